/* heard.h - an answer as a client of the storm hears it: taken apart, and each part checked against what was asked. */
#ifndef STORM_HEARD_H
#define STORM_HEARD_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/proxy/storm/plan.h"

enum heard_step {
    HEARD_MORE,
    HEARD_WHOLE,
    HEARD_WRONG /* `wrong` says what is */
};

/* Fields that are kept. */
enum heard_field {
    HEARD_BACKEND,
    HEARD_ID,
    HEARD_REQUEST_ID,
    HEARD_COOKIE,
    HEARD_TAKEN,
    HEARD_PLAN,
    HEARD_FIELDS
};

enum {
    HEARD_VALUE = 64
};

struct heard {
    const struct wish *wish;
    const char *wrong;                     /* static */
    char text[128];                        /* of an answer of the proxy's own: its body, one word */
    unsigned status;                       /* 0: no head has come */
    bool may_continue;                     /* a 100 has come */
    bool whole, by_end;                    /* the latter: it was the connection's end that made it whole */
    bool shorter;                          /* whole as it was framed, and yet not all that was to come */
    bool keep_alive;                       /* another request may follow */
    uint64_t bytes;                        /* of the body */
    char field[HEARD_FIELDS][HEARD_VALUE]; /* [HEARD_BACKEND] is "" in the proxy's own answers */
    char sent[PLAN_DIGEST];                /* the rest is heard.c's */
    size_t name_n, value_n, line_n, text_n;
    char name[32], value[HEARD_VALUE], line[PLAN_LINE];
    llhttp_t parser;
};

/** Begins anew, for the answer to this; `sent`: the digest of the request's body, "-" of none. */
void heard_begin(struct heard *heard, const struct wish *wish, const char *sent);

/** Takes what has come. */
enum heard_step heard_take(struct heard *heard, const char *bytes, size_t n);

/** The connection has ended in order. MORE: that was no end of an answer. */
enum heard_step heard_end(struct heard *heard);

#endif
