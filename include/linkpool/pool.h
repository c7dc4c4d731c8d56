/* pool.h - channels to many hosts: lease one by address or name, return it when done. */
#ifndef LINKPOOL_POOL_H
#define LINKPOOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backoff.h"
#include "driver.h"
#include "error.h"
#include "link.h"
#include "protocol.h"
#include "symbols.h"
#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pool;        /* opaque: from pool_new() to pool_free(); one loop and thread */
struct pool_host;   /* opaque: the pool's entry for one endpoint */
struct pool_target; /* opaque: a named set of hosts with a selection policy */
struct pool_picker;

enum {
    POOL_READY = 0,
    POOL_PENDING = 1
};

enum pool_disposition {
    POOL_REUSE,  /* the exchange is complete: lend it again if it is clean */
    POOL_DISCARD /* close it; of a shared link, which goes on: an answer is wanted no more */
};

enum pool_flags {
    POOL_WAIT_FOR_READY = 1, /* wait for the deadline even while every host is down */
    POOL_FRESH = 2           /* a link no one has used: the retry after a stale one */
};

/** Where a lease that failed had got to. */
enum pool_stage {
    POOL_STAGE_NONE,
    POOL_STAGE_LINE,     /* in line: every link allowed was busy */
    POOL_STAGE_BACKOFF,  /* waiting for a host's next try */
    POOL_STAGE_CONNECT,  /* a connection was being opened */
    POOL_STAGE_HANDSHAKE /* it was open, and its handshake under way */
};

/** Which bound LINKPOOL_EFULL met. */
enum pool_bound {
    POOL_BOUND_NONE,
    POOL_BOUND_LINE,         /* max_line of the target or host */
    POOL_BOUND_POOL_WAITING, /* the pool's max_waiting */
    POOL_BOUND_HOSTS,        /* the pool's max_hosts */
    POOL_BOUND_CALL_BYTES    /* the pool's max_call_bytes */
};

/** What became of what a lease sent, when its link ended under it. */
enum pool_fate {
    POOL_NOT_SENT,       /* the kernel took no byte: safe to repeat */
    POOL_SENT_NO_ANSWER, /* bytes were taken, none came back */
    POOL_PARTIAL,        /* some of the answer had come */
    POOL_UNKNOWN         /* its descriptor or native object was lent: not counted */
};

/**
 * A claim on a channel, from the wish to the return.
 *
 * All zero before its first use; the caller's storage, at one place from pool_acquire() to its end (released,
 * cancelled, failed, or over). It may be used again after that: the out members are written anew.
 */
struct pool_lease {
    void (*done)(struct pool_lease *lease);   /* in: told the outcome, once, from the loop or from pool_free() */
    void (*closed)(struct pool_lease *lease); /* in: the channel was taken away: the lease is over; may be NULL */
    void *data;                               /* in: the caller's; never read */
    double timeout; /* in: seconds from acquire to channel; 0: the line's default; INFINITY: none */
    unsigned flags; /* in: enum pool_flags */
    const struct pool_host
        *avoid;              /* in: not this host while another can; may be NULL; borrowed until channel or failure */
    uint64_t hash;           /* in: for pickers that hash */
    struct channel *channel; /* out: set while a channel is held, else NULL */
    struct pool_host *host;  /* out: whose channel it is or was; NULL before */
    int status;              /* out: POOL_READY, POOL_PENDING, or an error */
    int system_errno;        /* out: of the failure, 0 where there is none */
    enum link_reason reason; /* out: of the failure, or of the end under the lease */
    enum pool_stage stage;   /* out: what ate the deadline */
    enum pool_bound bound;   /* out: which bound was met */
    enum pool_fate fate;     /* out: of what was sent, when the link ended under the lease */
    bool reused;             /* out: the link had served before */
    uint64_t bytes_sent,
        bytes_received; /* out: of this lease, by channel_writev(), channel_send() and channel_read() */
    void *lib[12];      /* the library's */
};

/** What pool_host(pool, address) cannot say. All of it but the weight is the key: links are shared only where all is
 * equal. */
struct pool_endpoint {
    size_t size;                       /* sizeof (struct pool_endpoint) */
    const char *address;               /* copied */
    const char *server_name;           /* copied; NULL: none */
    const char *tag;                   /* copied; NULL: none. A tenant, database or user; never printed */
    const char *local;                 /* copied; NULL: none. The local address, port 0 allowed */
    const struct transport *transport; /* borrowed until the pool is freed; NULL: the host options' */
    const struct protocol *protocol;   /* borrowed until the pool is freed; NULL: the host options' */
    unsigned weight;                   /* for pickers that weigh; 0 is 1 */
};

/** How a host behaves. From pool_host_options_init(); copied, but for transport and protocol. 0 turns off what may be
 * off. */
struct pool_host_options {
    size_t size;
    unsigned max_links;        /* sockets at most; from 1; default 64 */
    unsigned min_links;        /* kept up while the host is pinned or in a target; 0 to max_links; default 0 */
    unsigned first_connecting; /* attempts at once, to begin with; from 1 to max_connecting; default 8 */
    unsigned max_connecting;   /* attempts at once, however well it goes; from 1; default 128 */
    unsigned max_uses;         /* leases until a link is replaced; 0: no limit; default 0 */
    bool spread_links;         /* the longest idle link first, for balancers behind, instead of the latest used, and
                                  shared links in turn instead of filling the oldest; default false */
    double idle_timeout;       /* seconds a link may be quiet; 0: for ever; default 55 */
    double max_age;            /* seconds a link may live, up to 10 % less, drawn at birth; 0: for ever; default 0 */
    double connect_timeout;    /* seconds from the start of an attempt to READY; above 0; default 3 */
    double reset_timeout;      /* seconds to be cleaned between two holders; above 0; default 3 */
    double drain_timeout;      /* seconds that leases on a leaving link may last; above 0; default 30 */
    const struct backoff_policy *backoff;     /* copied; default backoff_default */
    const struct transport *transport;        /* borrowed until the pool is freed; default transport_tcp */
    const struct protocol *protocol;          /* borrowed until the pool is freed; default protocol_raw */
    const struct heartbeat_policy *heartbeat; /* of protocols that can ask; copied; default heartbeat_default */
    double read_timeout; /* seconds that a leased link may be without a byte from its peer, from when on it is leased;
                            not while its holder has paused reading; 0: for ever; default 0. Set later, it holds for
                            links made from then on, and for those whose protocol can ask */
    unsigned max_unanswered; /* calls in a row that ran out of time on a link until it ends, each sent after the last of
                                them, and none of an answer having come since it was sent; 0: any; default 3 */
    unsigned max_channels;   /* channels of a shared link lent at once at most, however many its peer allows; 0: the
                                peer's number alone; default 0 */
};
void pool_host_options_init_sized(struct pool_host_options *options, size_t size);
#define pool_host_options_init(o) pool_host_options_init_sized((o), sizeof *(o))
/** As pool_options_check(). */
int pool_host_options_check(const struct pool_host_options *options, char *text, size_t n);

/** One structured record a transition of a link's state. */
struct link_transition {
    uint64_t link; /* the link's id */
    enum link_state from, to;
    const char *event;       /* static */
    enum link_reason reason; /* of an end; else LINK_NO_REASON */
    int system_errno;
    unsigned attempt; /* failures so far since it, or its host, was last stable */
    double delay;     /* seconds until the next attempt, where one is planned; else 0 */
    double now;       /* the driver's clock */
};

/** Looks on: its functions may call the reading functions only. Any may be NULL. */
struct pool_observer {
    size_t size; /* sizeof (struct pool_observer) */
    void (*transition)(void *data, const struct pool_host *host,
        const struct link_transition *transition); /* host NULL: a link on its own */
    void (*target)(void *data, const struct pool_target *target, enum link_state from, enum link_state to);
    void (*waited)(void *data, const struct pool_lease *lease,
        double seconds); /* a lease got its channel, or failed, after waiting */
    void *data;
    void (*many_probes)(void *data, unsigned due); /* of the heartbeat: 100 in one turn of the loop */
};

/** Bounds and defaults of a pool. From pool_options_init(). Every bound is from 1. */
struct pool_options {
    size_t size;
    const struct pool_host_options *host; /* for hosts named without options; copied; NULL: the defaults */
    unsigned max_links;                   /* sockets of all hosts; default half the soft descriptor limit */
    unsigned max_hosts;                   /* default 65,536 */
    unsigned max_names;      /* texts remembered, so that acquiring by text parses nothing; default 65,536 */
    unsigned max_waiting;    /* leases in all lines; default 65,536 */
    unsigned max_connecting; /* attempts at once, at most half of them (rounded up) for one host; default 256 */
    unsigned max_line;       /* leases in one line; default 1024 */
    double wait_timeout;     /* seconds from acquire to channel, where the lease does not say; above 0; default 5 */
    double host_timeout; /* seconds until a host without links, leases and pins is forgotten; above 0; default 300 */
    const struct linkpool_env *env;       /* borrowed until the pool is freed; default linkpool_env_system */
    const struct pool_observer *observer; /* copied; may be NULL */
    size_t max_call_bytes; /* of the requests of calls that wait, for a channel or for its protocol to take them; a
                              larger one is taken only where it need not wait; from 1; default 8 MiB */
};
void pool_options_init_sized(struct pool_options *options, size_t size);
#define pool_options_init(o) pool_options_init_sized((o), sizeof *(o))

/** Says whether options can be used. `text` gets the option, its value and its range; may be NULL with n 0. @return 0,
 * or LINKPOOL_EINVAL. */
int pool_options_check(const struct pool_options *options, char *text, size_t n);

/** A target. From pool_target_options_init(); copied. */
struct pool_target_options {
    size_t size;
    const struct pool_picker *picker; /* borrowed until the target is gone; default pool_round_robin */
    const struct pool_endpoint
        *endpoints; /* NULL: not known yet, leases wait; n_endpoints 0 otherwise: none, leases fail */
    size_t n_endpoints;
    const struct pool_host_options *host; /* for its hosts; NULL: the pool's */
    unsigned max_line;                    /* leases in its line; 0: the pool's */
    double wait_timeout;                  /* seconds; 0: the pool's */
};
void pool_target_options_init_sized(struct pool_target_options *options, size_t size);
#define pool_target_options_init(o) pool_target_options_init_sized((o), sizeof *(o))
/** As pool_options_check(); the endpoints are checked too, the faulty one named by its index and address. */
int pool_target_options_check(const struct pool_target_options *options, char *text, size_t n);

/* ---- the pool ---- */

/**
 * Makes a pool on a libev loop.
 *
 * @param loop     borrowed until pool_free().
 * @param options  NULL: the defaults.
 * @return the pool, or NULL with errno EINVAL (pool_options_check() says what) or ENOMEM.
 */
struct pool *pool_new(struct ev_loop *loop, const struct pool_options *options);

/** The same on any driver, which is the pool's from now on, and freed with it; on failure it stays the caller's. */
struct pool *pool_new_on(struct driver *driver, const struct pool_options *options);

/**
 * Ends everything now. Each waiting lease is told `done` (LINKPOOL_ECLOSED), each held one `closed`, before this
 * returns; no turn of the loop is needed. Never waits. Also from inside any callback: memory goes when the outermost
 * call or callback of ours returns. NULL: nothing happens.
 */
void pool_free(struct pool *pool);

/**
 * Takes no new leases; those waiting and those out may finish; then closes all links.
 *
 * @param timeout  seconds until what is left is ended as by pool_free(); 0: in this turn; INFINITY: no limit.
 * @param done     told once, from the loop, when no link and no lease is left; may be NULL. The pool still is the
 * caller's to free.
 * @return 0, LINKPOOL_EINVAL, or LINKPOOL_ESTATE (it drains already).
 */
int pool_drain(struct pool *pool, double timeout, void (*done)(struct pool *pool, void *data), void *data);

/** Forgets every host's failures and tries now where somebody waits. OFFLINE hosts stay so. */
void pool_reset_backoff(struct pool *pool);

/**
 * Says that the network may be another one: an address was lost or gained, a tunnel came up, the machine slept. (A
 * sleep of a second or more is noticed without it, with the first turn of the loop after it, where the system has a
 * clock that counts it.)
 *
 * What is known of links is doubted. One whose protocol can ask is asked at once, and is lent to nobody until it has
 * answered: leases wait for it, or for another that is opened meanwhile. Channels that are out stay with their holders;
 * of a link that is leased whole its holder finds out, and it is asked when it comes back. One that nobody holds ends
 * with the first answer it misses, others as the heartbeat's policy says. A link that cannot be asked (no ping, or no
 * heartbeat) ends at once, or when its holders give it back: as LINK_DRAINED.
 *
 * Attempts under way are given up, and made anew where somebody waits or links are kept up. As after
 * pool_reset_backoff() failures are forgotten and OFFLINE hosts stay so; but each host's next attempt waits a draw of
 * its policy's reconnect_spread, so that not all dial in the same instant.
 *
 * Many calls in a row cost no more than one but for what each asks: tell of changes, not of each packet of news about
 * them. What comes within a second of a call asks links at once; for the rest (links that cannot be asked, attempts,
 * failures) all that come in that second count as one call at its end. A draw that is waited for is not put off.
 */
void pool_network_changed(struct pool *pool);

/** In a child after fork(): forgets links and leases without a byte on the wire and without a callback. Leases are over
 *  (LINKPOOL_ECLOSED). Call it before the loop runs, and ev_loop_fork() for the loop; the pool can be used again, or
 * freed. */
void pool_after_fork(struct pool *pool);

/** The clock of deadlines: monotonic seconds, as of this turn. ev_now() is another clock. */
double pool_now(const struct pool *pool);

/** Changes bounds and defaults of a running pool (all but host, env and observer, which are not looked at). Links over
 * a lowered bound end when they are given back. NULL: the defaults. @return 0, or LINKPOOL_EINVAL with nothing changed.
 */
int pool_set_options(struct pool *pool, const struct pool_options *options);

/** What the last refused pool_host_for(), pool_target_add(), pool_target_update() or ..._set_options() of this pool was
 * about: the option or address, and the reason; "" where nothing was. Borrowed until the next of them. */
const char *pool_last_refusal(const struct pool *pool);

/* ---- leases ---- */

/**
 * Asks for a channel to an address, or to a target by its name.
 *
 * With a ready link at hand this returns POOL_READY, `lease->channel` is set and `done` does not run. Otherwise it
 * returns POOL_PENDING, and `done` runs once, from the loop, unless pool_cancel() comes first. An address needs no
 * preparation; its host is made on first use, with the pool's host options.
 *
 * @param target_or_address  read during the call only. A target's name has no ':' or '/'.
 * @param lease  the library's until it is released, cancelled, over, or has failed.
 * @return POOL_READY, POOL_PENDING, or an error, after which nothing is kept and `done` never runs:
 *         LINKPOOL_EUNAVAILABLE (every host is down and the lease does not wait for ready: reason, system_errno),
 *         LINKPOOL_EFULL (bound), LINKPOOL_EADDRESS, LINKPOOL_ECLOSED, LINKPOOL_ENOMEM,
 *         LINKPOOL_EINVAL (timeout negative, not a number or over ten years; unknown flags; no `done`),
 *         LINKPOOL_ESTATE (the lease is waiting or held already; it is untouched).
 */
int pool_acquire(struct pool *pool, const char *target_or_address, struct pool_lease *lease);
/** The same from a host, or a target, at hand. */
int pool_acquire_host(struct pool_host *host, struct pool_lease *lease);
int pool_acquire_target(struct pool_target *target, struct pool_lease *lease);

/** Gives up waiting; `done` will not run. @return 0, or LINKPOOL_ESTATE: it was not waiting, and nothing changed. */
int pool_cancel(struct pool_lease *lease);

/**
 * Gives the channel back. POOL_REUSE is a wish: only a link proven clean is lent again (nothing unread, nothing
 * unsent, no answer due, nothing of the holder's left).
 *
 * @return 0, or LINKPOOL_ESTATE: the lease holds no channel, and nothing changed; LINKPOOL_EINVAL.
 */
int pool_release(struct pool_lease *lease, enum pool_disposition disposition);

/** Says in words why a lease waits or failed. @return as snprintf(): the length of the whole text. */
int pool_explain(const struct pool_lease *lease, char *text, size_t n);

/* ---- hosts ---- */

/** Finds or makes the host of an address, and pins it: it stays until as many pool_host_drop(). @return the host, or
 * NULL with errno EINVAL (address), ENOSPC (max_hosts), ESHUTDOWN (draining) or ENOMEM. */
struct pool_host *pool_host(struct pool *pool, const char *address);
/** The same of an endpoint, with options of its own. The first to name a host sets its options; others with other
 * options are refused with errno EEXIST. @param options NULL: the pool's, or those it has. */
struct pool_host *pool_host_for(
    struct pool *pool, const struct pool_endpoint *endpoint, const struct pool_host_options *options);
/** Takes a pin back; the handle must not be used after it. */
void pool_host_drop(struct pool_host *host);

/** Brings a host into service: leaves OFFLINE and a drain, and opens a first link ahead of use. @return 0, or
 * LINKPOOL_ECLOSED (the pool drains). */
int pool_host_start(struct pool_host *host);
/** Takes a host out of service until pool_host_start(): to pickers it is down. @param timeout as pool_drain(). @return
 * 0, LINKPOOL_EINVAL. */
int pool_host_drain(struct pool_host *host, double timeout);
/**
 * Replaces its links, so that each that is there now ends when nobody holds it any more.
 *
 * @param rate  links a second. One that would be missed (a shared one in use while no other has room, or one that is
 *              kept up) is lent on until another is up in its place; where a bound leaves no room for another, or the
 *              host drains, it is not. 0: all take no new leases from now on, and nothing is opened but for who waits
 *              and for what is kept up.
 * @return 0, or LINKPOOL_EINVAL (rate below 0, or not a number).
 */
int pool_host_recycle(struct pool_host *host, double rate);
/** Changes bounds and times; backoff, transport and protocol stay. @return 0, or LINKPOOL_EINVAL or LINKPOOL_ENOMEM
 * with nothing changed.
 */
int pool_host_set_options(struct pool_host *host, const struct pool_host_options *options);

/** The best of its links' states, and BACKOFF (failing) or OFFLINE where it has a verdict; DRAINING when out of
 * service. */
enum link_state pool_host_state(const struct pool_host *host);
/** Says in words how it is: its state, its links, the last failure or loss and what the peer, transport or protocol
 * said of it, the time to the next try. @return as snprintf(). */
int pool_host_explain(const struct pool_host *host, char *text, size_t n);
/** The canonical address, borrowed until the host is gone. */
const char *pool_host_address(const struct pool_host *host);

struct pool_host_stats {
    enum link_state state;
    unsigned links[LINK_STATES];  /* per state */
    unsigned leased;              /* channels out */
    unsigned idle;                /* READY links without a lease */
    unsigned waiting;             /* leases in its own line */
    unsigned connect_limit;       /* attempts at once it may have now */
    unsigned failures;            /* since it was last stable */
    double retry_in;              /* seconds until the probe; 0: none planned */
    enum link_reason last_reason; /* of the last failure or loss */
    int last_errno;
    uint64_t uses, opened, connected, failed;
    uint64_t bytes_sent, bytes_received; /* of the leases that are over */
};
void pool_host_stats(const struct pool_host *host, struct pool_host_stats *stats, size_t size);

/* ---- targets ---- */

/** Makes a target. @return the target, or NULL with errno EINVAL (name: 1 to 255 bytes without ':' or '/'; options: the
 * check says what), EEXIST (the name is taken, or a member's host has other options), ENOSPC (max_hosts), ESHUTDOWN or
 * ENOMEM. */
struct pool_target *pool_target_add(struct pool *pool, const char *name, const struct pool_target_options *options);
/** Takes a new list of endpoints, as a set: links to those that stay, stay. With n 0 there are none and leases fail.
 * Hosts that leave their last target unpinned end their links when nobody holds them. @return 0, or an error with
 * nothing changed: LINKPOOL_EINVAL, LINKPOOL_EADDRESS, LINKPOOL_ESTATE (a member's host has other options),
 * LINKPOOL_EFULL, LINKPOOL_ECLOSED, LINKPOOL_ENOMEM. */
int pool_target_update(struct pool_target *target, const struct pool_endpoint *endpoints, size_t n);
/** Connects ahead of use, as a first use would; leaves OFFLINE. @return 0, or LINKPOOL_ECLOSED. */
int pool_target_start(struct pool_target *target);
/** Takes no new leases; those waiting and out may finish. `done` is told once, from the loop, when none is left; then
 * it is the caller's to remove. @param timeout as pool_drain(). @return 0, LINKPOOL_EINVAL, or LINKPOOL_ESTATE. */
int pool_target_drain(
    struct pool_target *target, double timeout, void (*done)(struct pool_target *target, void *data), void *data);
/** pool_host_recycle() of each of its hosts, each at this rate. */
int pool_target_recycle(struct pool_target *target, double rate);
/** Forgets the target: its waiting leases are told LINKPOOL_ECLOSED in this turn; those held go on. */
void pool_target_remove(struct pool_target *target);

/** READY, CONNECTING, IDLE, BACKOFF, OFFLINE: the best of its hosts'. Once in BACKOFF it stays so until one is READY.
 * CLOSED when draining. */
enum link_state pool_target_state(const struct pool_target *target);
/** Says in words how each of its hosts is. @return as snprintf(). */
int pool_target_explain(const struct pool_target *target, char *text, size_t n);
const char *pool_target_name(const struct pool_target *target);

/* ---- iterators: NULL begins, NULL ends; none may come or go meanwhile ---- */
struct pool_host *pool_next_host(const struct pool *pool, const struct pool_host *after);
struct pool_target *pool_next_target(const struct pool *pool, const struct pool_target *after);
struct pool_host *pool_target_host(const struct pool_target *target, size_t i); /* its i-th host; NULL past the last */
const struct link *pool_host_next_link(const struct pool_host *host, const struct link *after);

/* ---- pickers ---- */

/** What a host can do for the next lease. */
enum pool_host_can {
    POOL_HOST_CAN_SERVE, /* a channel is free now */
    POOL_HOST_CAN_OPEN,  /* another link may be opened, or is being opened */
    POOL_HOST_FULL,      /* its bounds are reached: wait */
    POOL_HOST_DOWN       /* failing, offline or out of service */
};

/** What a picker picks from. */
struct pool_pick {
    size_t n;
    struct pool_host *const *hosts;
    const unsigned *weights;
    enum pool_host_can (*can)(const struct pool_host *host);
    void *state;   /* state_size bytes, zeroed when the target is made */
    bool all_busy; /* for pick(): no host has a free channel, so none can serve, and need not be looked for */
};

enum {
    POOL_PICK_WAIT = -1,
    POOL_PICK_DOWN = -2
};

/** A selection policy. Its functions read only: no function of the library but the reading ones. */
struct pool_picker {
    size_t size; /* sizeof (struct pool_picker) */
    const char *name;
    size_t state_size;
    bool keeps_up; /* one link a host on first use, kept up while the target was used within idle_timeout */
    bool by_lease; /* which host a lease gets hangs on the lease, by its hash say: those in line for one host do not
                      hold up those for another. pick() and takes() are asked for each in line then, not for the first
                      alone */
    /** Picks a host for a lease (NULL: opening ahead): its index, POOL_PICK_WAIT or POOL_PICK_DOWN (every host is). A
     * host that can neither serve nor open may be picked: the lease waits for it. `draw`: 64 random bits when the state
     * has just been made or `changed` has run, else 0. */
    int (*pick)(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw);
    /** A channel is free on host i: may the lease have it? True of whatever pick() names for the lease: else an attempt
     * that is made for it serves nobody, and the next follows. NULL: any lease may. */
    bool (*takes)(const struct pool_pick *pick, const struct pool_lease *lease, size_t i);
    /** The list is another one, or a host's state has changed. NULL: nothing. */
    void (*changed)(const struct pool_pick *pick);
};

/** The first in order that is not down, until its links are gone; then from the top again. */
extern const struct pool_picker pool_pick_first;
/** READY hosts in turn, from a random one. */
extern const struct pool_picker pool_round_robin;

/* ---- figures ---- */

struct pool_stats {
    unsigned hosts, targets;
    unsigned links;                                   /* sockets */
    unsigned leased;                                  /* channels out */
    unsigned idle;                                    /* READY links without a lease */
    unsigned connecting;                              /* attempts under way */
    unsigned waiting;                                 /* leases in line */
    unsigned names;                                   /* texts remembered */
    uint64_t acquired_ready, acquired_waited;         /* leases that got a channel at once, and after waiting */
    uint64_t failed_fast, timed_out, full, cancelled; /* leases that did not */
    uint64_t opened;                                  /* attempts begun */
    uint64_t reused;                                  /* leases of a link that had served before */
    uint64_t peeked;                                  /* looks at a link handed on within its turn */
    uint64_t ends[LINK_REASONS];                      /* links ended, by reason */
    uint64_t ignored_events, stale_events;
    uint64_t wait_histogram[32]; /* waits, told or failed: [0] under 1 us, [i] from 2^(i-1) us to 2^i us, the last all
                                    above */
    struct heartbeat_stats heartbeat;
    uint64_t network_changes; /* calls of pool_network_changed(), and sleeps of the machine that were noticed */
};
void pool_stats(const struct pool *pool, struct pool_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif
#endif
