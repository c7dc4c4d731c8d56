/* script.h - an answer as a backend of the storm will give it: bytes, where it pauses, and what comes after. */
#ifndef STORM_SCRIPT_H
#define STORM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/proxy/storm/plan.h"

enum {
    SCRIPT_PIECEMEAL = 300 /* bytes that are sent in pieces, where they are */
};

enum script_then {
    THEN_READ, /* the next request */
    THEN_CLOSE,
    THEN_RESET,
    THEN_EXIT, /* of the process */
    THEN_HANG  /* until the peer closes */
};

struct script {
    char *bytes; /* owned; kept for the next */
    size_t n, room, sent;
    size_t stop;        /* a write ends here, and `pause` passes before the next; 0 with a pause: before the first */
    double pause;       /* seconds; 0: none */
    size_t piece;       /* bytes of each of the first writes; 0: all at once */
    bool strays;        /* a second answer is in it, behind the first */
    double stray_after; /* or is to come, so many seconds after the first; 0: none */
    enum script_then then;
};

/** What has come of the request that is answered. */
struct asked {
    const struct wish *wish;
    const struct act *act;
    const char *backend;
    const char *request_id; /* as it came in the field of that name */
    const char *cookie;     /* likewise */
    const char *taken;      /* "SIZE:DIGEST" of its body, "-" of none, "early" where it has not come */
};

/** Writes the script anew. */
void script_write(struct script *script, const struct asked *asked);

/** Writes an answer that nobody has asked for: another id's. */
void script_write_stray(struct script *script, const struct asked *asked);

void script_free(struct script *script);

#endif
