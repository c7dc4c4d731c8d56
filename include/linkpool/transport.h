/* transport.h - what moves a link's bytes, for those who write one: tcp, TLS, a client library that owns its socket. */
#ifndef LINKPOOL_TRANSPORT_H
#define LINKPOOL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "driver.h"
#include "link.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A link as its transport sees it. */
struct transport_link {
    const struct transport *transport;
    struct link *link; /* the library's */
    void *state;       /* state_size bytes, zeroed before each attempt; NULL when the size is 0 */
    int fd;            /* -1: none */
};

enum transport_step {
    TRANSPORT_UP,
    TRANSPORT_AGAIN,
    TRANSPORT_FAILED
};
enum transport_idle {
    TRANSPORT_CLEAN,
    TRANSPORT_BYTES,
    TRANSPORT_EOF,
    TRANSPORT_BROKEN
};
enum transport_flags {
    TRANSPORT_PLAIN_FD = 1 /* the descriptor carries the bytes as they are: channel_fd() may lend it */
};

/**
 * A transport. Static, or outlives every link made with it; in a key it is compared by its pointer, so other
 * settings are another transport object. Hooks marked may be NULL where said. Hooks call the functions of this
 * header only, for their own link.
 */
struct transport {
    size_t size; /* sizeof (struct transport) */
    const char *name;
    unsigned flags;
    size_t state_size;  /* bytes of state a link */
    const void *config; /* the transport's own settings; of transport_tcp: struct transport_tcp_options, or NULL */
    /** Starts (events 0), then goes on with what came. AGAIN after transport_want() or transport_retry(); FAILED after
     *  transport_fail(). */
    enum transport_step (*open)(struct transport_link *tl, unsigned events);
    /** As readv(): bytes, 0 at end of file, or -1 with errno (EAGAIN: nothing there). NULL: channel_native() is the way
     * in. */
    ssize_t (*readv)(struct transport_link *tl, const struct iovec *parts, int n);
    /** As writev(), never raising a signal; -1 with errno. NULL as above. */
    ssize_t (*writev)(struct transport_link *tl, const struct iovec *parts, int n);
    /** Bytes held back (a TLS record): readable again without a poll. NULL: never any. */
    size_t (*pending)(const struct transport_link *tl);
    /** Nobody holds it and it is readable, or it is handed on before the loop has polled. Swallows what is the
     * transport's own (tickets, notices). */
    enum transport_idle (*idle)(struct transport_link *tl);
    /** Given back: 0 clean, else it is closed (an open transaction). NULL: clean. */
    int (*reset)(struct transport_link *tl);
    /** Ends the sending side: 0, or -1 with errno. NULL: LINKPOOL_EOPTION. */
    int (*shutdown)(struct transport_link *tl);
    /** For channel_native(). NULL: none. */
    void *(*native)(struct transport_link *tl);
    /** What to watch when the holder wants `want` (TLS may have to write in order to read). NULL: the same. */
    unsigned (*interest)(const struct transport_link *tl, unsigned want);
    /** Closes the descriptor and frees what open() made; never waits. Called once an attempt, after failures too.
     *  quiet: after a fork, not a byte on the wire. */
    void (*close)(struct transport_link *tl, bool quiet);
};

/** Settings of the tcp transport: copy transport_tcp, point its `config` at one, use the copy. Zero is the system's. */
struct transport_tcp_options {
    size_t size;                 /* sizeof (struct transport_tcp_options) */
    bool keepalive;              /* SO_KEEPALIVE */
    unsigned keepalive_idle;     /* seconds of silence before the first probe; 0: the system's */
    unsigned keepalive_interval; /* seconds between probes; 0: the system's */
    unsigned keepalive_probes;   /* unanswered ones until it is dead; 0: the system's */
    double user_timeout; /* seconds that sent bytes may stay unacknowledged (TCP_USER_TIMEOUT); 0: the system's */
    const char *local;   /* local address to bind, port 0 allowed; an endpoint's own comes first; borrowed */
    bool nagle;          /* leave Nagle's algorithm on; by default TCP_NODELAY is set */
    /** Called with each new socket before it connects: 0, or -1 with errno, which fails the attempt. NULL: none. */
    int (*prepare)(void *data, int fd, int domain);
    void *data; /* for prepare */
};

/** TCP and unix sockets: non-blocking, close-on-exec. */
extern const struct transport transport_tcp;

/** Watches the descriptor for these events until the next call; for open(). */
void transport_want(struct transport_link *tl, unsigned events);
/** The transport's descriptor is `fd` now (-1: none for now); must follow each step of a library that owns its socket.
 */
void transport_moved(struct transport_link *tl, int fd);
/** Nothing to wait on: open(tl, 0) again in `delay` seconds, within the same deadline. */
void transport_retry(struct transport_link *tl, double delay);
/** Says why open() answers TRANSPORT_FAILED. `text` is copied; may be NULL. @return -1. */
int transport_fail(struct transport_link *tl, enum link_reason reason, int system_errno, const char *text);

/** The connection ended, told from outside the hooks. @return 0, or LINKPOOL_ELOST (tl NULL): that attempt is over.
 * Touch nothing of the link afterwards. */
int transport_lost(struct transport_link *tl, enum link_reason reason, int system_errno, const char *text);

/** One attempt, as outside code (a library's callback, a timer) may keep it: no pointer to what may be gone. */
struct link_attempt {
    struct driver *driver; /* outlives the handle: use none after the pool, or the last link on its own, is freed */
    uint64_t id;           /* 0: memory ran out; as one that is over */
};
struct link_attempt transport_attempt(struct transport_link *tl);
/** The link of an attempt, or NULL when that attempt is over, which is counted as stale. */
struct transport_link *transport_attempt_link(struct link_attempt attempt);

const struct linkpool_env *transport_env(const struct transport_link *tl);
const char *transport_address(const struct transport_link *tl);     /* canonical text */
const char *transport_server_name(const struct transport_link *tl); /* "" where none was given */
const char *transport_local(const struct transport_link *tl);       /* "" where none was given */

/* The socket part, for those built on it. Their `config` is their own: struct transport_tcp_options is read of a
 * transport whose `open` is transport_tcp_open itself. */
enum transport_step transport_tcp_open(struct transport_link *tl, unsigned events);
ssize_t transport_tcp_readv(struct transport_link *tl, const struct iovec *parts, int n);
ssize_t transport_tcp_writev(struct transport_link *tl, const struct iovec *parts, int n);
enum transport_idle transport_tcp_idle(struct transport_link *tl);
int transport_tcp_shutdown(struct transport_link *tl);
void transport_tcp_close(struct transport_link *tl, bool quiet);

#ifdef __cplusplus
}
#endif
#endif
