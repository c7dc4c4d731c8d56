/* framed_server.h - the server side of framed links (docs/linkpool-framed.7), without I/O: bytes in, calls of the
 * user's functions, bytes out. It serves fake peers and real sockets alike.
 *
 *     session = framed_session_new(&calls, data);        a client has come
 *     framed_session_take(session, bytes, n);            what it said; 0, or -1: hang up
 *     framed_session_answer(session, id, answer, n);     at once, or later
 *     framed_session_free(session);
 *
 * All that is to be said goes through calls.say, at once. A session may not be freed within its own calls. */
#ifndef LINKPOOL_TESTS_FAKES_FRAMED_SERVER_H
#define LINKPOOL_TESTS_FAKES_FRAMED_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct framed_session;

/** What a server does. Any but `say` may be NULL. `bytes` are borrowed during the call. */
struct framed_calls {
    void (*say)(struct framed_session *session, const void *bytes, size_t n); /* send these */
    /** A client introduces itself. NULL: everybody is welcome. @return false: it is sent away. */
    bool (*hello)(struct framed_session *session, const void *token, size_t n);
    void (*request)(struct framed_session *session, uint32_t id, const void *payload, size_t n);
    void (*cancel)(struct framed_session *session, uint32_t id); /* no answer is awaited any more */
    void (*pong)(struct framed_session *session, const void *eight);
    void (*goaway)(struct framed_session *session, uint32_t code, const char *text, size_t n);
    uint32_t max_payload; /* the largest request; 0: 1 MiB */
    uint32_t channels;    /* the limit said in HELLO_ACK */
    bool silent;          /* HELLO is not answered: framed_session_welcome() does that */
};

/** `calls` is borrowed until the session is freed; `data` is the user's. NULL: no memory. */
struct framed_session *framed_session_new(const struct framed_calls *calls, void *data);
void framed_session_free(struct framed_session *session);
void *framed_session_data(const struct framed_session *session);

/** What the client said, however it was cut. @return 0; or -1: it makes no sense, and GOAWAY has said why. */
int framed_session_take(struct framed_session *session, const void *bytes, size_t n);

/** HELLO_ACK with the numbers of `calls`. */
void framed_session_welcome(struct framed_session *session);
void framed_session_answer(struct framed_session *session, uint32_t id, const void *payload, size_t n);
void framed_session_error(struct framed_session *session, uint32_t id, uint32_t code, const char *text);
void framed_session_limit(struct framed_session *session, uint32_t channels);
void framed_session_ping(struct framed_session *session, const void *eight);
/** Requests above `last` are not processed; those that come are answered with ERROR 1. */
void framed_session_goaway(struct framed_session *session, uint32_t last, uint32_t code, const char *text);
/** Any frame, right or wrong: for tests of what clients do with it. `n` is what the header says, `has` what follows. */
void framed_session_frame(struct framed_session *session, uint32_t n, uint8_t type, uint8_t flags, uint16_t reserved,
    uint32_t id, const void *payload, size_t has);

bool framed_session_is_open(const struct framed_session *session);      /* HELLO has come, and was answered */
uint32_t framed_session_last_id(const struct framed_session *session);  /* of the requests so far */
uint32_t framed_session_takes(const struct framed_session *session);    /* the largest answer the client takes */
const char *framed_session_fault(const struct framed_session *session); /* why take() said -1; "" if it did not */

#ifdef __cplusplus
}
#endif
#endif
