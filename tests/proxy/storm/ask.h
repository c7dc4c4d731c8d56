/* ask.h - a request as a client of the storm sends it: composed, then sent as its wish has it. */
#ifndef STORM_ASK_H
#define STORM_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/proxy/storm/plan.h"

struct ask {
    const struct wish *wish;
    char *bytes;
    size_t head_n, n, sent;
    char digest[PLAN_DIGEST]; /* of its body; "-" of none */
};

/** Allocates what any request needs. */
void ask_init(struct ask *ask);

/** Composes a request; `wish` stays put until the next. */
void ask_compose(struct ask *ask, const struct wish *wish);

/** How far it may be sent: half of the body where the client then leaves, the head where it expects a 100. */
size_t ask_until(const struct ask *ask, bool may_continue);

/** Sends what one write takes of it. Returns what send() does. */
ssize_t ask_send(struct ask *ask, int fd, size_t until);

void ask_free(struct ask *ask);

#endif
