/* arrival.h - one request after another as it comes to a backend of the storm: each is checked against what the client
 * has sent, and written down at once. */
#ifndef STORM_ARRIVAL_H
#define STORM_ARRIVAL_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/proxy/storm/plan.h"

/** The log of a backend: a write(2) a line, so that kill -9 loses none. */
struct journal {
    int fd;
    const char *path;
};

/** Writes TIME PROCESS CONNECTION and the text, a line. */
void journal_say(const struct journal *journal, unsigned connection, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fields that are kept. */
enum arrival_field {
    ARRIVAL_ID,
    ARRIVAL_COOKIE,
    ARRIVAL_FORWARDED,
    ARRIVAL_EXPECT,
    ARRIVAL_FIELDS
};

enum {
    ARRIVAL_VALUE = 128 /* of a field; what is longer is cut off, and then wrong */
};

struct arrival {
    const struct journal *journal;
    unsigned connection, backend; /* their numbers */
    bool begun;                   /* a byte of a request has come, and not all */
    bool headed, whole;           /* its head, all of it has come */
    struct wish wish;             /* what the client has asked; when `headed` */
    struct act act;               /* how this backend behaves to it; likewise */
    struct digest digest;         /* of what has come of the body */
    char field[ARRIVAL_FIELDS][ARRIVAL_VALUE];
    bool wrong; /* the rest is arrival.c's */
    llhttp_t parser;
    size_t url_n, name_n, value_n;
    char url[ARRIVAL_VALUE], name[32], value[ARRIVAL_VALUE];
};

/** Makes it ready for a connection's first byte. */
void arrival_begin(struct arrival *arrival, const struct journal *journal, unsigned connection, unsigned backend);

/** Takes what has come, up to the end of one request; *used says how much that was. Returns false when it is no
 * request. */
bool arrival_take(struct arrival *arrival, const char *bytes, size_t n, size_t *used);

/** The connection is over: writes down what had come of a request that is not whole. */
void arrival_end(const struct arrival *arrival);

/** Writes down, once a request, that it is not what the client has sent. */
void arrival_is_wrong(struct arrival *arrival, const char *why);

#endif
