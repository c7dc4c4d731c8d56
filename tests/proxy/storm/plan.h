/* plan.h - what a seed decides: each request of the storm, and how each backend behaves to it.
 *
 * All of it is drawn from the seed and the request's number alone, so that client, backends and whoever reads their
 * logs know the same without asking each other: every byte of every body has one place where it belongs. */
#ifndef STORM_PLAN_H
#define STORM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_MAX_BODY = 100 * 1024,
    PLAN_COOKIE = 17, /* of a cookie, its NUL included */
    PLAN_DIGEST = 32, /* of "SIZE:DIGEST", its NUL included */
    PLAN_LINE = 96    /* of the line that an answer's body begins with */
};

/* ---- a request ---- */

enum plan_method {
    PLAN_GET,
    PLAN_HEAD,
    PLAN_POST,
    PLAN_PUT
};

/** When the client leaves without its answer. */
enum plan_leaving {
    LEAVE_NEVER,
    LEAVE_WAITING,   /* all is sent: some time after, if no byte of the answer has come */
    LEAVE_SENDING,   /* half of the body is sent */
    LEAVE_RECEIVING, /* the head of the answer has come: in order */
    LEAVE_BY_RESET   /* the same, by a reset */
};

struct wish {
    uint64_t id;
    enum plan_method method;
    unsigned minor; /* HTTP/1.minor */
    bool has_body, chunked, expect;
    bool close;         /* asks for the connection's end */
    bool lazy;          /* pauses before it reads the answer's body */
    bool goes_on;       /* sends its whole body though the answer has come */
    size_t body;        /* bytes */
    size_t pieces;      /* the first bytes are sent in pieces of so many; 0: all at once */
    double leave_after; /* seconds */
    enum plan_leaving leaving;
    char cookie[PLAN_COOKIE];
};

/* ---- an answer ---- */

/* What a backend does to a request, its share of 10,000 requests, and the methods it is for: all, uploads, HEAD. The
 * rest are answered at once, in full. */
#define PLAN_BEHAVIOURS(X)                                                                                             \
    X(PLAIN, plain, 0, ALL)                                                                                            \
    X(SLOW, slow, 400, ALL)                                                                                            \
    X(PIECES, pieces, 200, ALL)                                                                                        \
    X(HINTS, hints, 200, ALL)              /* 100 and 103 before the answer */                                         \
    X(LAST_SAID, last_said, 150, ALL)      /* answers with Connection: close, and closes */                            \
    X(LAST_UNSAID, last_unsaid, 150, ALL)  /* answers, and closes without a word */                                    \
    X(STALL, stall, 40, ALL)               /* never answers */                                                         \
    X(STALL_INSIDE, stall_inside, 20, ALL) /* stops in the midst of the answer */                                      \
    X(LATE, late, 80, ALL)                 /* answers after 0.3 to 1.5 s */                                            \
    X(TWICE, twice, 80, ALL)               /* another id's answer right behind, in the same write */                   \
    X(TWICE_ACROSS, twice_across, 60, ALL) /* ... with the last byte of the first, in a later write */                 \
    X(TWICE_BEHIND, twice_behind, 60, ALL) /* ... in a write of its own, at once */                                    \
    X(TWICE_IDLE, twice_idle, 60, ALL)     /* ... later, while the link is idle */                                     \
    X(CLOSE, close, 100, ALL)              /* reads the request and closes */                                          \
    X(CUT, cut, 100, ALL)                  /* closes in the midst of the answer */                                     \
    X(RESET, reset, 60, ALL)                                                                                           \
    X(RESET_INSIDE, reset_inside, 60, ALL)                                                                             \
    X(EXIT, exit, 1, ALL) /* the process is over */                                                                    \
    X(EXIT_INSIDE, exit_inside, 1, ALL)                                                                                \
    X(BROKEN, broken, 80, ALL)                /* what it sends is no answer */                                         \
    X(EARLY, early, 300, UPLOADS)             /* answers before the body, and takes it */                              \
    X(EARLY_CLOSE, early_close, 100, UPLOADS) /* answers before the body, and closes */                                \
    X(RESET_EARLY, reset_early, 60, UPLOADS)  /* resets before the body */                                             \
    X(HEAD_BODY, head_body, 100, HEADS)       /* answers HEAD with a body */

enum plan_behaviour {
#define PLAN_NAME(upper, lower, weight, methods) BEHAVIOUR_##upper,
    PLAN_BEHAVIOURS(PLAN_NAME)
#undef PLAN_NAME
    PLAN_N_BEHAVIOURS
};

/** How an answer's end is told. */
enum plan_framing {
    PLAN_LENGTH,
    PLAN_CHUNKED,
    PLAN_CLOSE
};

struct act {
    enum plan_behaviour behaviour;
    enum plan_framing framing;
    unsigned status;
    double delay; /* seconds: before the answer, or before a second one */
    double part;  /* in (0, 1): where in the answer it happens */
};

/** Sets the seed; first of all. */
void plan_begin(uint64_t seed);

/** What the client asks. */
void plan_wish(uint64_t id, struct wish *wish);

/** How backend number `backend` behaves to it. */
void plan_act(const struct wish *wish, unsigned backend, struct act *act);

const char *plan_method_name(enum plan_method method);
const char *plan_behaviour_name(enum plan_behaviour behaviour);
const char *plan_framing_name(enum plan_framing framing);

/** The PLAN_MAX_BODY bytes that the request's body, or its answer's, is the beginning of. */
const char *plan_request_bytes(uint64_t id);
const char *plan_answer_bytes(uint64_t id);

/** Of the answer's body, behind its first line. */
size_t plan_answer_size(uint64_t id);

/** Writes the line an answer's body begins with: whose it is, and what was taken of the request. @return its length */
size_t plan_answer_line(char line[PLAN_LINE], uint64_t id, const char *cookie, const char *taken);

/* ---- what both ends count ---- */

/** What has come of a body. */
struct digest {
    uint64_t bytes, sum;
};

void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const char *bytes, size_t n);
void digest_text(const struct digest *digest, char text[PLAN_DIGEST]);

/** Seconds of wall time, the same for all processes of the storm. */
double plan_now(void);

#endif
