/* ledger.c - which request reached a peer, and how often; and what its caller was told of it.
 *
 * A request that was not sent reaches nobody. One that was is not sent again, unless a peer has said that it did
 * nothing with it, or its caller has allowed that. */
#include <stdlib.h>

#include "tests/sim/sim.h"

static struct asked *entry(const struct sim *s, uint32_t id)
{
    HOLDS(s, id >= 1 && id <= s->n_asked);
    return &s->ledger[id - 1];
}

uint32_t ledger__new(struct sim *s, struct caller *caller)
{
    if (s->n_asked == s->ledger_room) {
        s->ledger_room = s->ledger_room ? 2 * s->ledger_room : 1024;
        s->ledger = realloc(s->ledger, s->ledger_room * sizeof *s->ledger);
        if (!s->ledger)
            abort();
    }
    s->ledger[s->n_asked++] = (struct asked){
        .who = caller, .repeats = caller->call->flags & POOL_CALL_SAFE_TO_REPEAT, .retries = caller->call->retries};
    return s->n_asked;
}

/* What is known of it by now agrees. */
static void check(const struct sim *s, const struct asked *asked)
{
    HOLDS(s, asked->received <= (asked->who ? asked->who->call->attempts : asked->attempts));
    HOLDS(s, asked->processed <= 1 || (asked->repeats && asked->retries));
    if (!asked->who && !asked->answered)
        HOLDS(s, asked->fate != POOL_NOT_SENT || !asked->processed);
}

void ledger__over(struct sim *s, const struct caller *caller)
{
    struct asked *asked = entry(s, caller->id);

    HOLDS(s, asked->who == caller);
    asked->who = NULL;
    asked->attempts = (uint16_t)caller->call->attempts;
    asked->fate = (uint8_t)caller->call->fate;
    asked->answered = caller->call->status == 0 || caller->call->status == LINKPOOL_EPEER;
    asked->cancelled = caller->call->status == LINKPOOL_ECANCELLED || caller->call->status == LINKPOOL_ETIMEDOUT;
    HOLDS(s, !asked->answered || asked->received);
    check(s, asked);
}

void ledger__received(struct sim *s, uint32_t id)
{
    struct asked *asked = entry(s, id);

    asked->received++;
    asked->processed++;
    check(s, asked);
}

void ledger__undone(struct sim *s, uint32_t id)
{
    struct asked *asked = entry(s, id);

    HOLDS(s, asked->processed);
    asked->processed--;
}

bool ledger__is_over(const struct sim *s, uint32_t id, bool *cancelled)
{
    const struct asked *asked = entry(s, id);

    *cancelled = asked->cancelled;
    return !asked->who;
}

void ledger__free(struct sim *s)
{
    for (uint32_t id = 1; id <= s->n_asked; id++)
        HOLDS(s, !entry(s, id)->who); /* each has had its outcome */
    free(s->ledger);
    s->ledger = NULL;
    s->n_asked = s->ledger_room = 0;
}
