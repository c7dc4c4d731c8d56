/* request.h - one HTTP/1.1 request after another from a client's bytes, with llhttp.
 *
 * Bodies are skipped, headers are bounded, and parsing stops after each whole request, so that answers keep their
 * order. Of a request its id is kept: the header X-Request-Id, or id= in the URL. */
#ifndef EXAMPLES_REQUEST_H
#define EXAMPLES_REQUEST_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    REQUEST_MAX_HEADER = 16384, /* bytes of URL and headers together, trailers too */
    REQUEST_MAX_ID = 128        /* longer ones are cut off */
};

enum request_step {
    REQUEST_MORE,   /* all bytes are used up, and the request is not whole yet */
    REQUEST_WHOLE,  /* id, keep_alive and is_head are set */
    REQUEST_REFUSED /* answer with `refusal` and close */
};

struct request {
    char id[REQUEST_MAX_ID]; /* out: one word of printable bytes; "" when there was none */
    bool keep_alive;         /* out: the client may send another */
    bool is_head;            /* out: it wants no body */
    const char *refusal;     /* out: "400 Bad Request" and the like */
    llhttp_t parser;         /* the rest is request.c's */
    size_t header_bytes, name_n, value_n, url_n;
    char name[32], value[REQUEST_MAX_ID], url[1024]; /* as they come, cut off at their bounds */
};

/** Makes it ready for a connection's first byte. */
void request_init(struct request *request);

/** Parses at most `n` bytes; *used says how many were. */
enum request_step request_parse(struct request *request, const char *bytes, size_t n, size_t *used);

#endif
