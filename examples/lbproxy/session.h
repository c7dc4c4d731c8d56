/* session.h - a client in http mode: one request and its answer at a time, over a lease of its own.
 *
 * http.c reads requests and says when a session is over, exchange.c owns the lease, upward.c sends the request,
 * downward.c the answer, own.c answers by itself. Functions that return bool say whether the session still is: after
 * false nothing of it may be touched. */
#ifndef LBPROXY_SESSION_H
#define LBPROXY_SESSION_H

#include <linkpool/pool.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/common/sockets.h"
#include "examples/lbproxy/buffer.h"
#include "examples/lbproxy/client.h"
#include "examples/lbproxy/message/compose.h"
#include "examples/lbproxy/message/message.h"
#include "examples/lbproxy/tunnel.h"

struct backend_counts;

enum {
    SESSION_MAX_DROPPED = 1 << 20 /* bytes of a client whose request nobody reads any more */
};

enum session_phase {
    SESSION_REQUEST,  /* between requests, or a part of a head has come */
    SESSION_EXCHANGE, /* a request is under way */
    SESSION_LINGER,   /* all is said: what the client still sends is dropped, until it hangs up */
    SESSION_TUNNEL    /* both sides speak another protocol */
};

/** What is known of the request under way, and of its answer. Zeroed before each. */
struct exchange {
    enum llhttp_method method;
    unsigned minor;       /* the client's HTTP/1.minor */
    bool keep_alive;      /* the client wants to go on after it */
    bool upgrade;         /* it asked for another protocol */
    bool repeatable;      /* GET, HEAD, OPTIONS or TRACE, without a body */
    bool request_chunked; /* its body goes out in chunks */
    bool identity;        /* its link is logged in as its user, and nobody else's then */
    bool deaf;            /* its link takes no more of it; what the backend has said may still come */
    bool answered;        /* the head of a final answer has been composed */
    bool spoken;          /* and a byte of it has gone out */
    bool answer_whole;    /* and nothing is to come after what is in `down` */
    bool answer_keeps;    /* the backend goes on after it */
    bool close;           /* the client's connection ends with this answer */
    enum framing framing; /* of the answer as it goes out */
    unsigned status;      /* of the answer; 0: none yet */
    unsigned interim;     /* 1xx passed on */
    unsigned tries;       /* links asked */
    bool reused;          /* the last link had served before */
    double started;       /* pool_now() at its head's last byte */
    double asked;         /* pool_now() when the lease was asked for */
    double waited;        /* seconds in line, of all tries */
    uint64_t told;        /* bytes of the answer's body */
    const char *backend;  /* the last one's address; NULL: none */
    const char *outcome;  /* a word for the log; NULL: it is under way still */
    char *target;         /* for the log; NULL without one; owned */
    size_t target_n;
};

struct session {
    struct client client; /* first: a client in http mode is a session */
    enum session_phase phase;
    struct exchange exchange;
    struct pool_lease lease;
    struct backend_counts *counts;      /* of the backend whose link is held; NULL: none is */
    struct backend_counts *answered_by; /* NULL: no backend has answered */
    unsigned channel_wants;
    struct buffer *in;   /* the client's bytes that are not parsed yet */
    struct buffer *up;   /* the request: from start on to be sent; before it kept, as long as a second try may follow */
    struct buffer *back; /* the backend's bytes that are not parsed yet */
    struct buffer *down; /* what the client has not taken yet */
    struct message request, answer;
    struct tunnel tunnel;
    bool head_is_partial;      /* what is in `in` is no whole head */
    size_t dropped;            /* bytes read of what nobody wants any more */
    char address[SOCKET_HOST]; /* the client's, without a port; "" until it is needed */
};

/* ---- http.c ---- */

/** Goes on after an event: takes the requests that stand in `in`, and watches for what is needed next. */
void session_go_on(struct session *session);

/* ---- exchange.c: the lease, from the wish to the return, and the end of the exchange ---- */

/** Asks for a link. The request stands in `up`, and `parts` have more of it. */
bool exchange_ask(struct session *session, struct parts *parts);

/** The link has failed the request: asks for another where that is allowed, else tells the client. */
bool exchange_lost(struct session *session, const char *outcome);

/** Gives the link back, or gives up waiting for it. */
void exchange_release(struct session *session, bool clean);

/** The answer is told: the session goes on with the next request, or ends. */
bool exchange_end(struct session *session);

/** Writes the line of the log, counts, and forgets the exchange; not told yet are those that end early. */
void exchange_forget(struct session *session);

/** Ends the session, with a word for the log. Always false. */
bool exchange_cut(struct session *session, const char *outcome);

/* ---- upward.c: the request ---- */

/** Takes bytes of the request's body: what cannot go into one `parts` goes to `up` before it, what is behind the
 * request stays in `in`. `at` is in the scratch space or, where there is one, in `in`. */
bool upward_take(struct session *session, const char *at, size_t n, struct parts *parts);

/** Sends what stands in `up`, then `parts`; what is not taken is kept in `up`. */
bool upward_send(struct session *session, struct parts *parts);

/** Keeps `parts` in `up`, for later. */
bool upward_keep(struct session *session, struct parts *parts);

/** The client has more: of the body, or behind it. */
bool upward_pump(struct session *session);

/* ---- downward.c: the answer ---- */

/** The backend has more of the answer. */
bool downward_pump(struct session *session);

/** Puts a head, or a whole answer, of `n` bytes behind what stands in `down`. */
bool downward_put(struct session *session, const char *bytes, size_t n);

/** Sends what stands in `down`, then `parts`; what is not taken is kept. */
bool downward_send(struct session *session, struct parts *parts);

/* ---- own.c: answers of lbproxy's own ---- */

/** Answers by itself, where no answer has begun: `status`, and a line of why. `outcome` is for the log. */
bool own_answer(struct session *session, unsigned status, const char *outcome, const char *why);

/** Answers what is no good request, and closes. */
bool own_refuse(struct session *session, const struct fault *fault, const char *outcome);

/** Tells the client why no link was to be had. */
bool own_unserved(struct session *session);

#endif
