/* link.h - one reconnecting connection, and the channels it carries.
 *
 * A link is a state machine with at most one socket, one attempt and one timer. Links of a pool are the pool's;
 * a link on its own (link_new) is the reconnecting client of a program with one upstream. A channel is the right
 * to use a ready link: all of it (exclusive), or one of its concurrent streams (shared). */
#ifndef LINKPOOL_LINK_H
#define LINKPOOL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "backoff.h"
#include "driver.h"
#include "error.h"
#include "heartbeat.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

struct link;
struct channel; /* opaque: its holder's until the lease ends */
struct transport;
struct protocol;
struct pool_lease;
struct pool_host;
struct pool_observer;

enum link_state {
    LINK_IDLE,        /* nothing to do; the first use starts it */
    LINK_CONNECTING,  /* the transport comes up */
    LINK_HANDSHAKING, /* the protocol introduces itself */
    LINK_READY,       /* channels may be leased */
    LINK_RESETTING,   /* being cleaned between two holders */
    LINK_DRAINING,    /* no new leases; those out may finish */
    LINK_BACKOFF,     /* waiting to try again; of a host or target: transient failure */
    LINK_OFFLINE,     /* retries used up; only an explicit start leaves it */
    LINK_CLOSED,      /* final */
    LINK_STATES
};

/** Why a connection ended; each end has one. */
enum link_reason {
    LINK_NO_REASON,
    LINK_REFUSED,     /* nobody listens there */
    LINK_UNREACHABLE, /* no route, or no such path */
    LINK_TIMED_OUT,   /* not READY within connect_timeout, not clean within reset_timeout, or given up by the kernel */
    LINK_NAME_NOT_FOUND,   /* the resolver knows no address */
    LINK_RESET,            /* the peer, or the network, broke it */
    LINK_CLOSED_BY_PEER,   /* end of file */
    LINK_HANDSHAKE_FAILED, /* the peer spoke, and would not have us */
    LINK_HEARTBEAT_LOST,   /* it answered no more */
    LINK_PROTOCOL_ERROR,   /* what it said made no sense */
    LINK_TLS_FAILED,       /* certificate or TLS fault; link_last_reason() has the library's text */
    LINK_UNEXPECTED_DATA,  /* bytes nobody waits for: unclean at return, or while nobody held it */
    LINK_IDLE_TIMEOUT,     /* quiet for idle_timeout */
    LINK_TOO_OLD,          /* max_age */
    LINK_USED_UP,          /* max_uses */
    LINK_DRAINED,          /* drained or recycled, or its host left its last target */
    LINK_DISCARDED,        /* by its holder */
    LINK_MADE_ROOM,        /* for another host, or for a fresh link */
    LINK_NO_DESCRIPTORS,   /* the process or the system has none left */
    LINK_NO_MEMORY,
    LINK_STOPPED,   /* link_stop(), link_free(), pool_free(), or nobody waited for the attempt any more */
    LINK_SENT_AWAY, /* the peer took leave of it and said that something is wrong, or before it had answered anything;
                       link_last_reason() has its words */
    LINK_REASONS
};

/** A static word for a state: "idle", "ready"; "unknown" for what is none. */
const char *link_state_name(enum link_state state);

/** A static phrase for a reason: "connection refused"; "unknown" for what is none. */
const char *link_reason_text(enum link_reason reason);

/**
 * Says whether a text is an address: 10.0.0.7:80, [::1]:80, [fe80::1%eth0]:80, unix:/run/x.sock, unix:@abstract.
 *
 * @param text  gets the canonical text (at most 160 bytes), or what is wrong and at which byte; cut to n.
 * @return 0, or LINKPOOL_EADDRESS.
 */
int link_address_check(const char *address, char *text, size_t n);

/** How a link on its own behaves. From link_options_init(); all that it points to is read during link_new() only,
 *  unless said otherwise. The callbacks run from the loop, never inside the call that asked, and may call anything,
 *  link_free() too; any may be NULL. */
struct link_options {
    size_t size;
    const struct transport *transport;    /* borrowed until link_free(); default transport_tcp */
    const struct protocol *protocol;      /* borrowed until link_free(); default protocol_raw */
    const struct backoff_policy *backoff; /* copied; default backoff_default */
    const char *server_name;              /* copied; for TLS; default none */
    const char *local;                    /* copied; the local address, port 0 allowed; default none */
    double connect_timeout;               /* seconds from the start of an attempt to READY; above 0; default 3 */
    double reset_timeout;                 /* seconds to be cleaned between two holders; above 0; default 3 */
    double drain_timeout;           /* seconds for what is under way when the peer is leaving; above 0; default 30 */
    const struct linkpool_env *env; /* borrowed until link_free(); default linkpool_env_system */
    const struct pool_observer *observer;                    /* copied; its transition alone; default none */
    bool fail_first;                                         /* the very first connect is not retried; default false */
    void (*connecting)(struct link *link, unsigned attempt); /* an attempt begins: 1 is the first */
    void (*connected)(
        struct link *link, struct channel *channel); /* READY; the channel is the owner's until disconnected */
    void (*disconnected)(struct link *link, enum link_reason reason); /* it was READY and is no longer */
    void (*reconnect)(struct link *link, unsigned attempt,
        double delay); /* failure number `attempt`; tried again in `delay` seconds */
    void (*stopped)(struct link *link,
        enum link_reason reason);             /* IDLE by link_stop() (LINK_STOPPED), or OFFLINE (the last failure) */
    void *data;                               /* the owner's; link_data() */
    const struct heartbeat_policy *heartbeat; /* of protocols that can ask; copied; default heartbeat_default */
    double read_timeout; /* seconds without a byte from its peer that end it; 0: for ever; default 0 */
};
void link_options_init_sized(struct link_options *options, size_t size);
#define link_options_init(o)                                                                                           \
    link_options_init_sized(                                                                                           \
        (o), sizeof *(o)) /* a plain function would write a newer, longer struct over an older caller's */

/** Says whether options can be used; `text` gets the option, its value and the range. @return 0, or LINKPOOL_EINVAL. */
int link_options_check(const struct link_options *options, char *text, size_t n);

/**
 * Makes a link on its own, IDLE. Nothing connects before link_start().
 *
 * @param driver   borrowed until the last link on it is freed; it serves links on their own, or one pool, not both.
 * @param address  read during the call only.
 * @return the link, the caller's until link_free(); or NULL with errno EINVAL (options, address: the two check
 *         functions say what), EBUSY (the driver is a pool's, or its links have another env) or ENOMEM.
 */
struct link *link_new(struct driver *driver, const char *address, const struct link_options *options);

/** Starts it from IDLE or OFFLINE, with a fresh count of attempts; elsewhere it changes nothing. The attempt begins at
 * the end of this turn. @return 0, or LINKPOOL_ESTATE: it is a link of a pool, which the pool alone starts, stops and
 * frees. */
int link_start(struct link *link);

/**
 * Says that the network may be another one, as pool_network_changed() does for a pool; a sleep of the machine is
 * noticed without it.
 *
 * READY: it is asked for a sign of life at once, and ends as the policy of its heartbeat says; without a ping or a
 * heartbeat, and while it is exclusive, its owner's own use is what finds out. In backoff, or during an attempt, its
 * failures are forgotten and it tries anew, after a draw of the policy's reconnect_spread; an attempt that is given up
 * for that is told as `reconnect` of number 0. IDLE and OFFLINE: nothing happens.
 *
 * @return 0, or LINKPOOL_ESTATE: it is a link of a pool.
 */
int link_network_changed(struct link *link);

/** Ends whatever is under way, at once, and rests in IDLE: no retry follows. Twice is safe. */
void link_stop(struct link *link);

/** Stops and frees it, also from inside its own callbacks; no callback follows. NULL: nothing happens. */
void link_free(struct link *link);

enum link_state link_state(const struct link *link);

/**
 * Why it, or the attempt before, ended.
 *
 * @param system_errno  gets errno, 0 where there was none; may be NULL.
 * @param text          gets the transport's or protocol's own words, "" where there are none, borrowed until the next
 *                      end; may be NULL.
 */
enum link_reason link_last_reason(const struct link *link, int *system_errno, const char **text);

/** Seconds until the next attempt; 0 outside BACKOFF. */
double link_retry_in(const struct link *link);

/** The `data` of its options; NULL for a link of a pool. */
void *link_data(const struct link *link);

/** Figures of a link. */
struct link_stats {
    uint64_t id; /* never repeats in a process's pool or driver */
    enum link_state state;
    unsigned attempt;        /* failures since it was last stable */
    unsigned reconnects;     /* times it was READY again after the first; of a pool's link: 0 */
    double last_reconnect;   /* seconds from the last loss to READY again; 0: never */
    double retry_in;         /* seconds; 0 outside BACKOFF */
    double age;              /* seconds since READY; 0: not open */
    unsigned channels, room; /* leased, and how many it can carry: its peer's word, within max_channels of its host */
    unsigned free;           /* how many it would lend now: what its room leaves, and its uses; none that is to end */
    uint64_t uses;           /* leases so far */
    uint64_t ignored_events; /* events that meant nothing in the state they met; of a pool's link: its pool's */
    uint64_t stale_events;   /* events of an attempt long over; of its pool's, or driver's, links together */
    uint64_t connection;     /* its last attempt: another one after each reconnect, never repeated; 0: none yet */
};
void link_stats(const struct link *link, struct link_stats *stats, size_t size);

/* ---- channels ---- */

/** What a holder hears of its channel, from the loop. Any may be NULL; each may call anything. */
struct channel_events {
    void (*readable)(struct channel *channel); /* exclusive: channel_read() has something, or the end; rings each turn
                                                  until it is read or not wanted */
    void (*writable)(struct channel *channel); /* room again */
    void (*message)(
        struct channel *channel, const void *bytes, size_t n); /* shared: a message; bytes borrowed during the call */
    /** Shared: the peer's error instead of a message: its code and words, borrowed during the call. NULL: it is told to
     * nobody. */
    void (*error)(struct channel *channel, uint32_t code, const void *words, size_t n);
    /** Shared: a piece of a message, in order, as it came; `last`: that was all of it. Bytes borrowed during the call;
     * n may be 0. Only of protocols that have pieces; what they give whole comes to `message`. It cannot be paused, as
     * that would hold up all channels of the link: who takes pieces slowly gives it up, or stores them. NULL: messages
     * come whole. */
    void (*part)(struct channel *channel, const void *bytes, size_t n, bool last);
};

/**
 * Says who hears of the channel, and of what.
 *
 * @param events  borrowed until the lease ends.
 * @param want    LINKPOOL_READ and LINKPOOL_WRITE. READ stays until taken back; WRITE rings while there is room.
 * @return 0, LINKPOOL_EINVAL, or LINKPOOL_ESTATE (the lease is over).
 */
int channel_watch(struct channel *channel, const struct channel_events *events, unsigned want);

/** Changes the interest alone; what is not wanted waits in the kernel, so the peer feels it. @return as
 * channel_watch(); LINKPOOL_EINVAL also when something is wanted and channel_watch() has not said who hears of it. */
int channel_want(struct channel *channel, unsigned want);

/**
 * Reads from an exclusive channel.
 *
 * @return bytes, above 0; 0: end of file, and the channel stays the holder's; LINKPOOL_EAGAIN; LINKPOOL_ELOST: the
 *         connection broke (lease->reason, lease->system_errno), release it; LINKPOOL_EOPTION: not this transport.
 */
ssize_t channel_read(struct channel *channel, void *bytes, size_t n);

/** Writes to an exclusive channel, never raising SIGPIPE. @return bytes taken, perhaps fewer than given;
 * LINKPOOL_EAGAIN: none, want LINKPOOL_WRITE; else as channel_read(). */
ssize_t channel_writev(struct channel *channel, const struct iovec *parts, int n);

/** Sends one message on a shared channel. @return 0, LINKPOOL_EAGAIN (no room: `writable` follows), LINKPOOL_ELOST or
 * LINKPOOL_EOPTION. */
int channel_send(struct channel *channel, const void *bytes, size_t n);

/** Ends the sending side (half-close); such a link is not used again. @return 0, LINKPOOL_ELOST or LINKPOOL_EOPTION. */
int channel_shutdown(struct channel *channel);

/** Lends the descriptor, -1 where there is none. The bytes moved by it are not counted: the fate becomes POOL_UNKNOWN,
 * and the link is looked at before it is handed on. Do not close it, nor add it to the same loop. */
int channel_fd(struct channel *channel);

/** The client library's object (PGconn, redisContext); NULL where there is none. */
void *channel_native(struct channel *channel);

/** The link carries an identity now: it is closed at the end of this lease, never lent again. */
void channel_keep_private(struct channel *channel);

struct link *channel_link(const struct channel *channel);
/** The lease that holds it; NULL on a link on its own. */
struct pool_lease *channel_lease(const struct channel *channel);
/** The holder's own pointer; cleared when the lease ends. */
void channel_set_data(struct channel *channel, void *data);
void *channel_data(const struct channel *channel);

#ifdef __cplusplus
}
#endif
#endif
