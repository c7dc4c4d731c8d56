/* bare.h - the wire form of framed links (docs/linkpool-framed.7) by hand, on epoll: what no library can do without.
 *
 * A server that answers each request with itself, and a client whose callers ask again as soon as they are answered.
 * Both reuse their buffers, read as much as there is, and write once for all that one readable event brought; answers
 * are matched to callers by id. What is not of use on loopback, time and loss, is left out. */
#ifndef LINKPOOL_TESTS_BENCH_FRAMED_BARE_H
#define LINKPOOL_TESTS_BENCH_FRAMED_BARE_H

#include <stddef.h>
#include <stdint.h>

enum {
    BARE_HEAD = 12,
    BARE_HELLO = 1,
    BARE_HELLO_ACK = 2,
    BARE_REQUEST = 4,
    BARE_ANSWER = 5,
    BARE_BUFFER = 128 * 1024, /* bytes, each way */
    BARE_PAYLOAD = 32,        /* bytes of a request, and of its answer */
    BARE_CHANNELS = 1024      /* the server's limit a link */
};

/** One side of a connection. */
struct bare_conn {
    int fd, epoll;
    int is_stuck; /* the socket took only a part: room to write is watched for */
    size_t n_in, n_out, gone;
    void *data; /* the owner's */
    unsigned char in[BARE_BUFFER], out[BARE_BUFFER];
};

/** A frame that came; `payload` is borrowed. */
typedef void bare_on_frame(
    struct bare_conn *conn, unsigned type, uint32_t id, const unsigned char *payload, uint32_t n);

struct bare_conn *bare_new(int fd, int epoll, void *data);
void bare_put(struct bare_conn *conn, unsigned type, uint32_t id, const void *payload, uint32_t n);
void bare_write(struct bare_conn *conn);
/** What epoll said of it: reads, tells, and writes what was put meanwhile. @return 0, or -1: the other side is gone. */
int bare_ready(struct bare_conn *conn, unsigned events, bare_on_frame *on_frame);

/** Serves forever; ends the process when `control`, the reading end of a pipe, is closed at its other end. */
_Noreturn void bare_serve(int listening, int control);

/** A client with `n_links` connections to a port of loopback; callers are spread evenly over them. */
struct bare_client;
struct bare_client *bare_client_new(uint16_t port, unsigned n_links, unsigned n_callers);
void bare_client_call(struct bare_client *client, unsigned n); /* makes so many calls, and returns when all are over */
void bare_client_free(struct bare_client *client);

static inline void bare_die(const char *what);

#include <stdio.h>
#include <stdlib.h>
static inline void bare_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

#endif
