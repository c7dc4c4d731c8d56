/* internal.h - the pool from the inside, shared by the files of pool/.
 *
 * What hangs on what: a pool has hosts and targets; a host has links; leases wait in a line, of a host or of a target,
 * or hold a channel, or are about to be told. What is decided is told from the loop, in the order of decision. */
#ifndef LINKPOOL_POOL_INTERNAL_H
#define LINKPOOL_POOL_INTERNAL_H

#include "link/internal.h"
#include "link/table.h"
#include "linkpool/pool.h"

/* ---- leases ---- */

enum claim_state {
    CLAIM_OVER,    /* not ours: before, and after */
    CLAIM_WAITING, /* in a line */
    CLAIM_WON,     /* has a channel, and is to be told */
    CLAIM_FAILED,  /* has failed, and is to be told */
    CLAIM_HELD,    /* its holder has the channel */
    CLAIM_LOST     /* its channel was taken away, and it is to be told */
};

/** The library's part of a lease, in its `lib`. What is of use without a wait lies first. */
struct __attribute__((may_alias)) pool_claim {
    struct pool *pool;
    struct pool_target *target; /* by which target it came; NULL: by a host. Held and waiting */
    struct channel *channel;    /* won: its own; told: shown in the lease */
    uint8_t state;              /* enum claim_state */
    uint8_t has_own_time;       /* wait.timer is in use */
    uint8_t in_order; /* of a call: it goes behind those that have won a channel of its link and were not told yet */
    uint32_t decided; /* order of decision; what is decided while telling is told a turn later */
    struct pool_claim *prev, *next; /* in its line, or among those to be told */
    union {
        struct {
            struct pool_claim *prev, *next;
        } usual;                /* the line's leases that wait the line's own time: in order of deadline */
        struct link_node timer; /* those with a time of their own */
    } wait;
    struct pool_line *line; /* waiting, and won: to go back there */
    uint64_t ticket;        /* order of arrival */
    double deadline;
    double asked; /* when */
};
_Static_assert(sizeof(struct pool_claim) <= sizeof(((struct pool_lease *)0)->lib), "a claim fits its lease");

static inline struct pool_claim *pool__claim(const struct pool_lease *lease)
{
    return (struct pool_claim *)(void *)lease->lib;
}
static inline struct pool_lease *pool__lease(const struct pool_claim *claim)
{
    return (struct pool_lease *)(void *)((char *)claim - offsetof(struct pool_lease, lib));
}

/** Leases in line, first come first served: of a target, or of a host (by address or handle). */
struct pool_line {
    struct pool_claim *first; /* utlist, in order of ticket */
    struct pool_claim *usual; /* utlist, those who wait the line's own time, in order of deadline */
    struct link_node timer;   /* the first of `usual`; may ring early */
    union {
        struct link_node starving; /* in the pool's heap, by the ticket of `first`: the pool's total is in its way */
        struct {
            struct pool_line *unseen_prev, *unseen_next; /* else, in the pool's `unseen`: pool__is_unseen() */
        };
    };
    struct pool_host *host; /* whose; or */
    struct pool_target *target;
    struct pool_line *prev, *next; /* in the pool's `wanting`; prev NULL: it is not */
    unsigned n : 31;
    bool is_starving : 1;
    unsigned served_by; /* leases that attempts under way, opened for it, will serve */
};

/* ---- hosts ---- */

/** Options of hosts, shared by all that have the same; counted. */
struct pool_settings {
    struct link_terms terms;          /* first: a host's owner points here */
    struct pool_host_options options; /* its backoff points at the terms' */
    unsigned refs;
};

enum pool_place {
    PLACE_IDLE,
    PLACE_RESERVE,
    PLACE_PARTIAL,
    PLACE_BUSY,
    PLACE_OPENING,
    PLACE_RESTING,
    PLACES,
    PLACE_NONE = PLACES
};

struct pool_membership { /* of a host in a target; one for each pair */
    struct pool_host *host;
    struct pool_target *target;
    struct pool_membership *prev, *next;           /* in the host's list */
    struct pool_membership *lend_prev, *lend_next; /* in the target's `lending`; prev NULL: it is not */
    size_t index;                                  /* in the target's array */
};

struct pool_host {
    struct link_owner owner; /* first: a link's owner is this. One line of cache */
    /* What leasing and returning touch lies together: two lines more. */
    /* utlist. IDLE: READY, unleased, the latest used first; RESERVE: unleased too, but its peer takes nobody just now,
     * or has missed an answer; PARTIAL: leased, with room, the oldest first; BUSY: without; OPENING; RESTING: BACKOFF
     * or OFFLINE, one at most */
    struct link *lists[PLACES];
    uint32_t n_idle, n_leased;
    uint16_t connect_limit;
    uint16_t successes;       /* since the limit last changed; while it is brisk: up to where it is */
    uint8_t state;            /* enum link_state: as last told to its targets */
    uint8_t n_replacing;      /* links to be recycled that are lent on until another is up in their place */
    bool is_down : 1;         /* as last told to its targets */
    bool is_listed : 1;       /* while a target's list is made: it is in it */
    bool is_shared : 1;       /* its links carry several channels */
    bool lends_top : 1;       /* exclusive links, the latest used first */
    bool lends_held : 1;      /* shared links, the oldest with room */
    bool is_plain : 1;        /* exclusive links, no hooks at the return, no max_uses: returned by the short way */
    bool failed : 1;          /* the verdict of the last attempts: while it has no READY link, it is failing */
    bool holding : 1;         /* an attempt has failed and others are under way: nothing is opened until they tell */
    bool draining : 1;        /* out of service */
    bool closing : 1;         /* what is not needed is being closed */
    bool start_asked : 1;     /* pool_host_start(): a first link, ahead of use */
    bool brisk : 1;           /* the opening limit gains one a success */
    bool died_young : 1;      /* one of the failures since it was last stable was the end of a READY link */
    bool probe_due : 1;       /* the probe's time has come, and a bound of the pool is in its way */
    bool may_lend : 1;        /* all of its memberships are in their targets' `lending` */
    struct link_node timer;   /* the coldest idle link, or the end of a host nobody needs; may ring early */
    struct link_node coldest; /* in the pool's heap, by the coldest idle link's idle_since; may be early */
    uint64_t uses, bytes_sent, bytes_received;
    struct pool_membership *memberships;
    struct pool_line line;
    uint32_t n[LINK_CLOSED]; /* links in each state before it */
    uint32_t n_memory : 26;  /* links whose memory has not gone */
    uint32_t roomless : 6;   /* links in a row that came up and could carry nobody; 63: that many or more */
    uint32_t pins;
    uint32_t expected_room; /* what an attempt is taken to serve */
    float last_delay;       /* seconds: the backoff's last answer */
    double first_failure, failed_at;
    double counted_at; /* the last failure that counted; links READY by then belong to it */
    double not_before; /* no attempt before this: the spread after a loss */
    union {
        double keep_after;     /* needed: what is kept up is not opened before this */
        double unneeded_since; /* not needed */
    };
    union {
        double halved_at; /* in service: when the opening limit was last halved */
        double drain_due; /* draining: until when leases may last */
    };
    uint64_t failed_attempts_to; /* attempts and links numbered up to this belong to the last failure */
    uint32_t asked_at, tried_at; /* tickets, cut: asked since the last try, the probe goes on */
    uint32_t failures;           /* since it was last stable */
    uint32_t opened, connected, failures_seen;
    struct pool_name *names; /* texts that lead here */
    UT_hash_handle hh;       /* by key, which follows; also the pool's list */
};

/* ---- targets ---- */

struct pool_target {
    struct pool *pool;
    char *name;
    const struct pool_picker *picker;
    struct pool_pick pick; /* what the picker sees */
    struct pool_host **hosts;
    unsigned *weights;
    struct pool_membership **members;
    struct pool_membership *lending; /* utlist: of the hosts with a link in IDLE, RESERVE or PARTIAL, and of some that
                                        had one: see pool__lending() */
    size_t room;                     /* of the three arrays */
    struct pool_settings *settings;  /* NULL: the pool's */
    struct pool_line line;
    unsigned max_line;              /* 0: the pool's */
    double wait_timeout;            /* 0: the pool's */
    uint32_t in_state[LINK_STATES]; /* hosts in each state */
    uint32_t n_down;
    uint32_t n_held;   /* leases out */
    uint32_t n_calls;  /* calls that may come back to it */
    uint32_t asked_at; /* ticket, cut, of the last acquire that found nothing ready */
    uint64_t draw;     /* random bits for the next pick; 0: used up */
    double used_at;    /* the last acquire; negative: never */
    uint8_t state;     /* enum link_state */
    bool known;        /* it has had a list */
    bool stuck;        /* BACKOFF by verdict: until one is READY */
    bool draining, removed;
    bool over;              /* removed, or its drain's time is up: nobody comes back to its line */
    struct link_node timer; /* of its drain */
    void (*drained)(struct pool_target *target, void *data);
    void *drained_data;
    struct pool_target *prev, *next; /* the pool's list */
};

/* ---- names ---- */

/** A text as given, and where it leads. */
struct pool_name {
    struct pool_name *next;     /* the host's others */
    struct pool_target *target; /* or */
    UT_hash_handle hh;          /* a look-up reads its end, the host and the text: one line of cache, or two */
    struct pool_host *host;
    char text[];
};

/* ---- the pool ---- */

enum pool_node_kind {
    POOL_NODE_LEASE = 1,
    POOL_NODE_LINE,
    POOL_NODE_HOST,
    POOL_NODE_TARGET,
    POOL_NODE_CALL,
    POOL_NODE_CALLS,
    POOL_NODE_FANOUT,
    POOL_NODE_NETWORK,
    POOL_NODE_DRAIN
};

struct pool {
    struct link_core core; /* first: its keeper finds the pool by it */
    struct pool_options options;
    struct pool_observer observer;
    struct pool_settings *settings; /* of hosts named without */
    struct pool_host *hosts;        /* by key; in order of birth by hh.next */
    struct pool_target *targets;    /* utlist */
    struct pool_name *names;        /* by text */
    struct pool_line *wanting;      /* utlist: lines that want an attempt, in turn */
    struct pool_line *unseen;       /* utlist: of those the ones that were not looked at since they were wanted last */
    struct link_heap starving;      /* lines that the total keeps waiting, by their first ticket */
    struct link_heap coldest;       /* hosts with idle links, by their coldest */
    struct pool_claim *to_tell;     /* utlist: decided, in order */
    struct pool_target *removed;    /* utlist: targets whose leases are still out */
    uint64_t ticket;                /* the last given to a lease that was not served at once */
    uint32_t decided;
    bool serving; /* pool__serve() is under way */
    unsigned n_hosts, n_targets, n_links, n_opening, n_leased, n_waiting, n_names;
    struct link_node drain_timer;
    void (*drained)(struct pool *pool, void *data);
    void *drained_data;
    bool draining, drain_told, freed;
    char refusal[256];
    uint64_t acquired_ready, acquired_waited, failed_fast, timed_out, full, cancelled, opened, peeked;
    uint64_t first_uses; /* leases of a link that had not served before */
    uint64_t network_changes;
    double begun_anew;              /* when a change last had all begin anew */
    struct link_node network_timer; /* those that followed soon after have it do so again */
    uint64_t wait_histogram[32];
    struct fanout_state *groups; /* utlist: decided, in order, and to be told */
    struct call_state *clocked;  /* utlist: calls in order of deadline, but for those with a timer of their own */
    struct link_node call_timer; /* the first of them; may ring early */
    size_t call_bytes;           /* of the requests of calls that no protocol has taken yet */
    double retry_budget;         /* of calls: what is saved up; below 0: owed */
    uint64_t retry_second;       /* which one retries_now counts */
    unsigned retries_now;
    bool bounds_lowered; /* pool_set_options(): what is over the new bounds goes as it comes back */
#ifdef LINKPOOL_CHECK
    unsigned checks;
#endif
};

static inline double pool__now(const struct pool *pool)
{
    return pool->core.driver->now;
}
static inline struct pool_host *pool__host_of(const struct link *link)
{
    return (struct pool_host *)link->owner;
}
static inline struct pool *pool__of(const struct pool_host *host)
{
    return (struct pool *)host->owner.core;
}
static inline struct pool_settings *pool__settings(const struct pool_host *host)
{
    return (struct pool_settings *)host->owner.terms;
}
static inline const struct pool_host_options *pool__options(const struct pool_host *host)
{
    return &pool__settings(host)->options;
}
static inline unsigned pool__sockets(const struct pool_host *host) /* every one that exists counts */
{
    return host->n[LINK_CONNECTING] + host->n[LINK_HANDSHAKING] + host->n[LINK_READY] + host->n[LINK_RESETTING] +
           host->n[LINK_DRAINING];
}
static inline unsigned pool__opening(const struct pool_host *host)
{
    return host->n[LINK_CONNECTING] + host->n[LINK_HANDSHAKING];
}
static inline bool pool__is_unseen(const struct pool_line *line)
{
    return !line->is_starving && line->unseen_prev;
}
static inline bool pool__has_ready(const struct pool_host *host)
{
    return host->n[LINK_READY] + host->n[LINK_RESETTING];
}
static inline bool pool__is_down(const struct pool_host *host)
{
    return host->draining || ((host->failed || host->n[LINK_OFFLINE]) && !pool__has_ready(host));
}
struct link *pool__last_resort(const struct pool_host *host); /* of the reserve, one with room; or NULL */
static inline void pool__won_no_more(const struct pool_claim *claim)
{
    if (link__is_shared(claim->channel->link))
        link__shared(claim->channel->link)->n_promised--;
}
static inline struct link *pool__free_link(const struct pool_host *host) /* a link with a free channel, or NULL */
{
    struct link *partial = host->lists[PLACE_PARTIAL], *idle = host->lists[PLACE_IDLE];

    if (partial && (!idle || !link__is_suspect(partial)))
        return partial;
    return idle || !host->lists[PLACE_RESERVE] ? idle : pool__last_resort(host);
}

/* pool.c */
extern const struct link_keeper pool__keeper;
void pool__refuse(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pool__end_all(struct pool *pool); /* every link and every wait, now; told at the end of the turn */

/* options.c */
struct pool_settings *pool__settings_new(const struct linkpool_env *env, const struct pool_host_options *given);
bool pool__settings_are(const struct pool_settings *settings, const struct pool_host_options *given);
void pool__settings_drop(const struct linkpool_env *env, struct pool_settings *settings);
void pool__host_options_take(struct pool_host_options *taken, const struct pool_host_options *given);
void pool__target_options_take(struct pool_target_options *taken, const struct pool_target_options *given);
void pool__options_take(struct pool_options *taken, const struct pool_options *given);
/* 0, or LINKPOOL_EINVAL or LINKPOOL_EADDRESS: `text` says why, and nothing of it is to be used. */
int pool__endpoint_take(struct pool_endpoint *taken, const struct pool_endpoint *given, char *text, size_t n);

/* key.c: the canonical bytes of an endpoint */
enum {
    POOL_KEY = 1024
}; /* room for any key */
struct pool_key {
    uint32_t size;
    uint16_t address_text, server_name, local; /* where in `bytes` these texts begin; each ends with a NUL */
    char bytes[POOL_KEY];
};
int pool__key_make(struct pool_key *key, const struct pool_endpoint *endpoint, const struct pool_host_options *options,
    char *why, size_t n);

/* names.c: the texts by which hosts and targets are asked for */
static inline struct pool_name *pool__name_find(const struct pool *pool, const char *text)
{
    struct pool_name *name;

    HASH_FIND(hh, pool->names, text, strlen(text), name);
    return name;
}
int pool__name_add(struct pool *pool, const char *text, struct pool_host *host, struct pool_target *target);
void pool__name_remove(struct pool *pool, struct pool_name *name);
void pool__names_forget(struct pool_host *host);

/* host.c */
int pool__host_find(struct pool *pool, const struct pool_endpoint *endpoint, const struct pool_host_options *options,
    struct pool_settings *settings, struct pool_host **host);
int pool__host_by_text(
    struct pool *pool, const char *text, struct pool_host **host); /* of an address; remembers the text */
void pool__host_remove(struct pool_host *host);                    /* no lease of it is left */
void pool__host_changed(
    struct pool_host *host); /* its links have changed: tell its targets, and those who wait when it went down */
void pool__host_rang(struct pool_host *host);
struct link *pool__link_new(struct pool_host *host);
void pool__arm_host(struct pool_host *host);
void pool__see_host(struct pool_host *host); /* is it still needed, is its drain done? */
void pool__close_unneeded(struct pool_host
        *host); /* draining, or left by its last target: what nobody holds ends, what is held ends at its return */
void pool__retire(struct link *link, enum link_reason reason); /* it ends once nobody holds it */
bool pool__enough_last(const struct pool_host *host, unsigned live,
    unsigned enough); /* of so many links, of which those that will not be lent again keep nothing up */
bool pool__one_less_is_too_few(const struct pool_host *host); /* of its links, for what is kept up */
void pool__host_times(struct pool_host *host);                /* its links' times, after its options have changed */
void pool__arm_idle_late(struct pool_host *host, double idle_since);
static inline void pool__arm_idle(
    struct pool_host *host, double idle_since) /* a link fell idle: timers that are set are early enough */
{
    if (!link__node_is_set(&host->coldest) || !link__node_is_set(&host->timer))
        pool__arm_idle_late(host, idle_since);
}

/* places.c; see pool__last_resort() as well */
void pool__place(struct link *link);      /* puts a link in the list where it belongs */
void pool__place_anew(struct link *link); /* in its list too: it is another's turn, or its trust has changed */
void pool__lends(struct pool_host *host); /* it may from now on: its targets look there again */
void pool__lends_no_more(struct pool_membership *member);
const struct pool_membership *pool__lending(
    struct pool_target *target); /* of a host with a free link; NULL: none has */
void pool__unlist(struct link *link);
struct link *pool__coldest(const struct pool_host *host); /* longest without a lease, or NULL */

/* recycle.c */
bool pool__is_replaced_first(
    struct link *link); /* to be recycled: it is lent on until another is up; false: it is not */
static inline bool pool__is_to_be_replaced(const struct link *link)
{
    return link->bits & LINK_RECYCLED && isinf(link->recycled_after);
}
void pool__replaced(struct pool_host *host);    /* another is up */
void pool__replaced_no_more(struct link *link); /* it ends anyhow */

/* line.c */
void pool__line_init(struct pool_line *line, struct pool_host *host, struct pool_target *target);
int pool__line_hold(struct pool *pool); /* room in the heaps */
void pool__line_drop(struct pool *pool, struct pool_line *line);
int pool__wait(struct pool *pool, struct pool_line *line, struct pool_lease *lease);
void pool__unwait(struct pool_lease *lease);
void pool__wait_again(struct pool_lease *lease);            /* a winner whose link died */
void pool__fail(struct pool_lease *lease, int status);      /* waiting: decided; told at the end of the turn */
void pool__fail_late(struct pool_lease *lease, int status); /* over: the same, of what failed after it had a channel */
void pool__fail_line(struct pool_line *line, int status, bool fail_fast_alone);
void pool__line_rang(struct pool *pool, struct pool_line *line);
void pool__time_out(struct pool_lease *lease);
void pool__give(struct pool_lease *lease, struct channel *channel); /* waiting: won */
void pool__to_tell(struct pool *pool, struct pool_lease *lease);
void pool__untell(struct pool *pool, struct pool_lease *lease);
bool pool__tell_one(struct pool *pool, uint32_t limit);

/* figures.c */
unsigned pool__idle(const struct pool *pool);

/* explain.c */
void pool__explain_failure(
    struct pool_lease *lease, const struct pool_line *line); /* reason and errno, from its hosts */
enum pool_stage pool__stage(const struct pool_line *line);   /* what its leases wait for */

/* acquire.c */
struct link *pool__fresh_link(const struct pool_host *host); /* a free one that nobody has used, or NULL */
struct channel *pool__take(
    struct pool_host *host, struct pool_lease *lease); /* leases a free channel of the host, or NULL: there is none */

/* serve.c, release.c */
void pool__serve(struct pool_host *host);            /* free channels to those who wait */
void pool__serve_target(struct pool_target *target); /* its hosts' free channels */
void pool__serve_all(
    struct pool_host *host); /* it is another: a free channel of its targets' other hosts may do now as well */
void pool__told(struct channel *channel); /* link__told(), and a shared link that goes on has room again */
struct pool_lease *pool__oldest_taker(
    const struct pool_host *host); /* the first of those who wait that a free link of the host would do for */
void pool__lost(struct channel *channel, enum link_reason reason, int system_errno, bool safe_to_repeat);

/* opening.c */
void pool__want(struct pool_line *line);          /* looks at it at the end of the turn */
void pool__look_again(struct pool_line *line);    /* the same, of a line that has another first lease */
void pool__want_host(struct pool_host *host);     /* its own line, and its targets' */
void pool__look_again_at(struct pool_host *host); /* of both, those that starve too: a link of it may serve now */
void pool__unwant(struct pool_line *line);
void pool__open_wanted(struct pool *pool);
void pool__link_gone(struct pool *pool); /* a socket is closed: room for those who starve */
double pool__used_until(
    const struct pool_target *target); /* until when its use keeps its hosts up; -INFINITY: it does not */
double pool__kept_up_until(const struct pool_host *host); /* the same, of all its targets */
unsigned pool__kept_up(const struct pool_host *host);     /* links to be kept up */
void pool__keep_up(struct pool_host *host);               /* it was pinned, or put in a list: see to it */
bool pool__make_room(struct pool *pool,
    struct pool_host *but); /* closes the coldest idle link of any host but this one; false: there is none */
bool pool__must_make_room(
    const struct link *link); /* just given back, or up: its place is owed to an older waiter elsewhere */
bool pool__can_open(const struct pool_host *host);
void pool__forget_line(struct pool_host *host, struct pool_line *line); /* its attempts are nobody's now */
void pool__attempt_over(struct link *link);                             /* it is no longer opening */

/* verdict.c */
struct link_next pool__ended(struct link *link, const struct link_end *end);
void pool__sent_away(struct link *link, enum link_reason reason);
void pool__succeeded(struct link *link);
void pool__retry(struct link *link);
void pool__proven(struct link *link);
void pool__see_room(struct link *link); /* shared, it has carried nobody before: can it? */
void pool__reset_host_backoff(struct pool_host *host);
void pool__begin_anew(struct pool_host *host);    /* the same, and its next attempt waits a draw, as after a loss */
void pool__bring_back(struct pool_host *host);    /* into service, with a first link ahead of use */
void pool__spread_upkeep(struct pool_host *host); /* what is kept up waits a draw of reconnect_spread */
/* What is kept up is not opened for so long, or longer where that was said before. */
void pool__keep_after(struct pool_host *host, double wait);
void pool__pause_upkeep(struct pool_host *host); /* a little: memory or room was short */

/* network.c */
void pool__network_begin_anew(struct pool *pool); /* all but what is asked */

/* members.c */
struct pool_members { /* a target's list as it is being made */
    size_t n, room;
    struct pool_host **hosts; /* pinned meanwhile */
    unsigned *weights;
    struct pool_membership **members;
};
int pool__members_make(
    struct pool_target *target, const struct pool_endpoint *endpoints, size_t n, struct pool_members *list);
void pool__members_give_up(struct pool *pool, struct pool_members *list);
void pool__members_put(struct pool_target *target, struct pool_members *list); /* in the place of the former */
void pool__members_clear(struct pool_target *target);

/* target.c */
void pool__tell_picker(struct pool_target *target); /* its list, or a host's state, is another */
static inline bool pool__all_down(const struct pool_target *target)
{
    return target->known && target->n_down == target->pick.n;
}

void pool__target_host_changed(
    struct pool_target *target, enum link_state from, enum link_state to, bool was_down, bool is_down);
void pool__target_see(struct pool_target *target);
void pool__see_target_drain(struct pool_target *target);
void pool__use_target(struct pool_target *target); /* somebody asks: what it keeps up comes up */
void pool__target_free(struct pool_target *target);
void pool__target_rang(struct pool_target *target);
enum pool_host_can pool__can(const struct pool_host *host);
int pool__pick(struct pool_target *target, const struct pool_lease *lease);
bool pool__takes(struct pool_target *target, const struct pool_lease *lease, size_t i);

/* check.c */
#ifdef LINKPOOL_CHECK
void pool__check(struct pool *pool);
void pool__check_calls(const struct pool *pool);
void pool__check_host(struct pool *pool, const struct pool_host *host);
#else
#define pool__check(pool)            ((void)(pool))
#define pool__check_calls(pool)      ((void)(pool))
#define pool__check_host(pool, host) ((void)(pool), (void)(host))
#endif

#endif
