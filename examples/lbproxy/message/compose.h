/* compose.h - heads as they go out: written anew from what was parsed, with what a proxy adds and leaves out. */
#ifndef LBPROXY_COMPOSE_H
#define LBPROXY_COMPOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/lbproxy/message/head.h"

enum {
    COMPOSE_ROOM = 1024,    /* a composed head is at most so much longer than the one parsed, with texts as below */
    COMPOSE_MAX_TEXT = 160, /* of `client` and `authority` */
    REQUEST_ID_SIZE = 33    /* of a request id of our own, its NUL included */
};

/** What a request is told on its way. */
struct request_terms {
    const char *client;     /* its address, without the port: X-Forwarded-For */
    const char *authority;  /* Host, where the client gave none */
    const char *request_id; /* X-Request-Id, where the client gave none that is good (1 to 128 bytes '!' to '~') */
};

/** What an answer is told on its way. */
struct answer_terms {
    unsigned client_minor; /* HTTP/1.minor of its client */
    bool close;            /* the client's connection is closed after it */
    enum framing framing;  /* of what goes out: see compose_framing() */
};

/** Writes a request's head, as HTTP/1.1. @return its length; 0: it has not fit. */
size_t compose_request(char *out, size_t room, const struct head *head, const struct request_terms *terms);

/** How an answer's body goes out to such a client: length, chunks where it knows them, else until close. */
enum framing compose_framing(const struct head *answer, unsigned client_minor);

/** Writes an answer's head, as HTTP/1.1; also of a 1xx (FRAMING_NONE; 101 with its Upgrade). @return as above. */
size_t compose_answer(char *out, size_t room, const struct head *head, const struct answer_terms *terms);

/** An answer of our own. */
struct own_answer {
    unsigned status;
    const char *line;   /* the body, without its line end: one line, whatever is in it */
    double retry_after; /* seconds, written in whole ones, rounded up; 0: not said */
    const char *allow;  /* the Allow field; NULL: none */
    unsigned client_minor;
    bool close;
    bool head; /* to a HEAD: without the body */
};

/** Writes an answer of our own, head and body. @return as above. */
size_t compose_own(char *out, size_t room, const struct own_answer *answer);

#endif
