/* internal.h - a link from the inside, shared by the files of link/ and by its keepers (pool/, link/alone.c).
 *
 * A core is one driver's: all that a pool, or the links on their own of a thread, have in common. A keeper is whom a
 * link belongs to: it keeps lists and figures, decides what follows an end, and tells holders. */
#ifndef LINKPOOL_LINK_INTERNAL_H
#define LINKPOOL_LINK_INTERNAL_H

#include <math.h>

#include "link/address.h"
#include "link/blocks.h"
#include "link/fsm.h"
#include "link/heap.h"
#include "link/heartbeat.h"
#include "link/hints.h"
#include "linkpool/pool.h"
#include "linkpool/protocol.h"
#include "linkpool/transport.h"

/* ---- the core ---- */

struct link_core {
    struct driver *driver;
    const struct linkpool_env *env;
    const struct link_keeper *keeper;
    struct link_heap timers;
    double alarm;   /* asked of the driver; INFINITY: none */
    unsigned depth; /* calls and callbacks of ours under way that may free */
    unsigned hooks; /* of protocols, under way, that may run inside the user's calls: no holder is called from them */
    bool later_asked;
    struct link_shared *gathering; /* utlist: links whose protocol has something to write at the end of this turn */
    struct link *dead;             /* freed; memory goes when depth is 0 and each holder has been told */
    struct link_blocks blocks;
    struct link_attempt_entry *attempts; /* a table: the attempts that outside code keeps */
    uint64_t serial;                     /* the last number given to a link or an attempt */
    struct link_fsm_counts counts;
    uint64_t ends[LINK_REASONS];
    struct link_heartbeat_figures heartbeat;
};

enum {
    LINK_NODE_LINK = 0 /* kinds of timer nodes above are the keeper's */
};

void link__core_init(
    struct link_core *core, struct driver *driver, const struct linkpool_env *env, const struct link_keeper *keeper);
void link__core_free(struct link_core *core); /* what it owns; not the driver */
static inline double link__now(const struct link_core *core)
{
    return core->driver->now;
}
void link__timer_set(struct link_core *core, struct link_node *node, double due); /* INFINITY: clears it */
void link__timer_clear(struct link_core *core, struct link_node *node);
void link__gathers(struct link *link); /* shared: its protocol's input() runs at the end of this turn */
void link__gathers_no_more(struct link *link);
void link__ask_later(struct link_core *core);
static inline void link__later(struct link_core *core) /* asks for the keeper's turn() at the end of this turn */
{
    if (!core->later_asked)
        link__ask_later(core);
}
static inline void link__enter(struct link_core *core)
{
    core->depth++;
}
void link__left(struct link_core *core);               /* the last of them is over */
static inline void link__leave(struct link_core *core) /* may free the core: touch nothing after it */
{
    if (!--core->depth)
        link__left(core);
}
void *link__alloc(const struct linkpool_env *env, size_t size); /* zeroed, or NULL */
void link__release(const struct linkpool_env *env, void *memory, size_t size);
double link__draw(const struct link_core *core); /* uniform in [0, 1) */
static inline double link__min(double a, double b)
{
    return a < b ? a : b;
}
static inline double link__max(double a, double b)
{
    return a > b ? a : b;
}

/* ---- what the links of one endpoint share: the first member of a host, and of a link on its own ---- */

/** The times of links; hosts with the same options have one. */
struct link_terms {
    double connect_timeout, reset_timeout, drain_timeout, max_age, read_timeout;
    unsigned max_channels, max_uses; /* of a link; 0: no bound */
    struct backoff_policy backoff;
    struct heartbeat_policy heartbeat;
};

struct link_owner {
    struct link_core *core;
    const struct transport *transport;
    const struct protocol *protocol;
    const struct link_terms *terms;
    const char *address_text; /* canonical; parsed at each attempt, so that a scope is the interface of now */
    char *text;               /* the transport's or protocol's words on the last end; NULL: none; owned */
    int fail_errno;           /* said by transport_fail(), until the end that it explains */
    int last_errno;
    uint16_t server_name, local; /* where these texts begin, from address_text on */
    uint8_t eased : 4;           /* how often its peer has complained of too many probes, of late */
    uint8_t has_pong : 1;        /* its protocol has called protocol_pong(): then nothing else is the answer */
    uint8_t eased_at;            /* a quarter of an hour, cut: when that changed last, or was asked for again */
    uint8_t fail_reason;
    uint8_t last_reason; /* enum link_reason of the last end that counts to its keeper */
};

static inline const char *link__server_name(const struct link_owner *owner)
{
    return owner->address_text + owner->server_name;
}
static inline const char *link__local(const struct link_owner *owner)
{
    return owner->address_text + owner->local;
}

/* ---- channels ---- */

enum {
    CHANNEL_FREE,
    CHANNEL_HELD,
    CHANNEL_OVER /* its holder has still to be told */
};

struct channel {
    struct link *link;
    struct pool_lease *lease; /* NULL on a link on its own */
    const struct channel_events *events;
    void *data;
    uint8_t want, state;
    bool promised; /* leased to one who has still to be told: nobody has used it yet */
    bool has_sent; /* shared: its protocol took a message, be it an empty one */
};

/** A channel of a shared link; channel_size bytes of state follow. */
struct link_stream {
    struct channel channel;
    struct protocol_channel protocol;
    struct link_stream *prev, *next; /* in its link's list of used ones; free: `next` alone */
};

enum {
    LINK_STREAM_STATE = (sizeof(struct link_stream) + 15) & ~(size_t)15 /* where that state begins */
};
static inline struct link_stream *link__stream_of(struct channel *channel)
{
    return (struct link_stream *)((char *)channel - offsetof(struct link_stream, channel));
}
static inline struct link_stream *link__stream_of_state(void *state)
{
    return (struct link_stream *)(void *)((char *)state - LINK_STREAM_STATE);
}

/** What a shared link has beside: behind struct link. */
struct link_shared {
    struct link_shared *prev, *next; /* in the core's `gathering`; prev NULL: it is not */
    struct link_stream *free, *used;
    struct link_slab *slabs;
    unsigned said; /* by its protocol: channels that it can carry, */
    unsigned room; /* and those of them that it may lend: see link__set_room() */
    unsigned n_used, n_streams;
    unsigned n_promised; /* of n_used: leased to such as have still to be told */
    unsigned delivering; /* messages being heard: their bytes may be its protocol's, so it ends after them */
    unsigned
        unanswered;    /* calls in a row that met silence until their time was up, each sent after the last of these */
    uint16_t silences; /* counts on with each of these, and with each sign that it answers: whoever was sent a request
                          before has not met the silence since */
    void *unsent;      /* the keeper's: who has a channel, and waits to send */
};

/* ---- the link ---- */

enum link_bits {
    LINK_WATCHED = 1,   /* the descriptor is with the driver */
    LINK_STARTED = 2,   /* the protocol's start() ran: end() is owed */
    LINK_ENDING = 4,    /* its end is being carried out */
    LINK_KEPT = 8,      /* outside code keeps a handle of this attempt */
    LINK_UNPROVEN = 16, /* READY, and stable_after has still to pass */
    LINK_ANSWERED = 32, /* some lease has received bytes on it */
    LINK_UNSURE = 64,   /* given back in the turn `turn`: to be looked at if lent again in it */
    /* of this lease: */
    LINK_MOVED = 128,      /* bytes moved */
    LINK_SENT_LAST = 256,  /* the holder sent last: an answer may be due */
    LINK_DRAINED_IN = 512, /* the last read was short: nothing was left then */
    LINK_LENT = 1024,      /* its descriptor or native object was lent */
    LINK_SHUT = 2048,      /* its sending side was ended */
    LINK_PRIVATE = 4096,   /* it carries an identity */
    LINK_UNREAD = 8192,    /* reading is paused with something there */
    LINK_RECYCLED = 16384, /* from recycled_after on it ends once nobody holds it */
    LINK_HEARS = 32768,    /* for life: a struct link_heartbeat lies behind it */
    LINK_OF_LEASE = LINK_MOVED | LINK_SENT_LAST | LINK_DRAINED_IN | LINK_LENT | LINK_SHUT | LINK_PRIVATE | LINK_UNREAD
};

struct link {
    struct driver_io io;
    struct transport_link transport;
    struct protocol_link protocol;
    struct link_node timer;
    uint64_t id;
    double since; /* opening: when the attempt began; READY and after: when it was READY */
    /* What leasing and returning touch lies together: two lines of cache. */
    struct channel channel; /* exclusive: the one; while opening, channel.data is the keeper's */
    struct link_owner *owner;
    struct link *prev, *next; /* in one of the keeper's lists, or in the core's `dead` (next alone) */
    struct link_fsm fsm;
    double idle_since; /* when the last lease ended */
    uint32_t turn;     /* of the driver, when it was given back; while opening, the keeper's */
    uint32_t uses;
    uint32_t tells : 30;     /* holders still to be told of their end: until then it is neither opened nor freed */
    uint32_t is_judged : 1;  /* draining: what is wrong with its peer has counted, and its end counts no more */
    uint32_t is_unasked : 1; /* a drain ends it in its time: it sends no probe any more */
    float recycled_after;    /* seconds since READY; see LINK_RECYCLED */
    uint16_t bits;
    uint16_t age_draw; /* drawn at birth, of 65536: how much earlier than max_age it goes, and is asked */
    uint8_t place;     /* the keeper's: which list it is in */
    uint8_t interest;  /* what the driver watches for; LINKPOOL_UNWATCHED: see link__watch_or_end() */
    uint8_t retire;    /* enum link_reason: it ends with that once nobody holds it; 0: it does not */
    uint8_t fault;     /* enum link_reason: the end or error its holder has seen; 0: none */
};

enum link_kind_of_end {
    LINK_END_QUIET,
    LINK_END_LOSS,
    LINK_END_FAILURE
};

struct link_end {
    enum link_kind_of_end kind;
    enum link_reason reason;
    int system_errno;
    enum link_state from;
};

/** What follows an end. */
struct link_next {
    enum link_event event; /* LINK_EV_END_RETRY, _REST or _OUT */
    double delay;
};

struct link_keeper {
    /** An end begins: take it out of every list, so that nobody is given a channel of it. NULL: nothing to do. */
    void (*ending)(struct link *link);
    /** An attempt or connection has ended; its leases are over already. */
    struct link_next (*ended)(struct link *link, const struct link_end *end);
    /** The state has changed: put it in its list, count, tell the observer. */
    void (*moved)(struct link *link, const struct link_transition *transition);
    /** It is READY, clean again, has more room, or was given back while a message was heard. */
    void (*served)(struct link *link);
    /** After an end, when all is settled: the keeper may free or open it. */
    void (*settled)(struct link *link, const struct link_end *end);
    /** A held channel is over; its holder is to be told. */
    void (*lost)(struct channel *channel, enum link_reason reason, int system_errno, bool safe_to_repeat);
    /** The holder of an exclusive link has met its end of file or a fault, or would have, had it read. NULL: that is
     * looked at when the channel comes back. */
    void (*faulted)(struct link *link, int system_errno);
    /** Its peer sends it away for this, and somebody will be on it still: that counts now. It has not begun to drain,
     * or has for no fault. NULL: it counts at its end. */
    void (*sent_away)(struct link *link, enum link_reason reason);
    void (*proven)(struct link *link);  /* READY for stable_after */
    void (*trusted)(struct link *link); /* it is asked or doubted, has missed an answer, or is heard of again */
    void (*many_probes)(struct link_core *core, unsigned due); /* so many were due at once; may be NULL */
    void (*retry)(struct link *link);                          /* the retry timer rang */
    void (*aged)(struct link *link);                           /* max_age, or `retire` was set: see link__retire_at() */
    void (*rang)(struct link_core *core, struct link_node *node); /* a timer of the keeper's own */
    void (*turn)(struct link_core *core);                         /* the end of a turn */
    void (*slept)(struct link_core *core);                        /* the machine, for a while */
    void (*buried)(struct link_owner *owner);                     /* the memory of one of its links has gone */
    bool (*over)(struct link_core *core); /* depth is 0: true when the core is to be freed; then gone() is called */
    void (*gone)(struct link_core *core);
};

struct link *link__new(struct link_owner *owner); /* IDLE; NULL: no memory */
void link__free(struct link *link);               /* from IDLE: closed, and its memory goes when it may */
void link__open(struct link *link);               /* an attempt, from IDLE, OFFLINE or a rung BACKOFF; `tells` is 0 */
void link__hold(struct link *link, double delay); /* IDLE: an attempt, but later */
void link__end(struct link *link, enum link_reason reason, int system_errno); /* the connection ceased, or is to */
void link__stop(struct link *link, enum link_reason reason); /* to IDLE from anywhere; nothing follows */
void link__forget(struct link *link);  /* after a fork: to IDLE without a byte and without a word */
void link__clean(struct link *link);   /* READY, unheld: its protocol cleans it */
void link__drain(struct link *link);   /* READY: no new leases */
void link__drained(struct link *link); /* DRAINING: ends it when nobody holds it */
void link__led_away(struct link *link, enum link_reason reason, const char *text, bool is_left); /* see
    protocol_going(); `is_left`: of those who hold it some stay */
void link__part(struct link *link, enum link_reason reason); /* READY, unheld: ends it, after the answer it waits for */
void link__retire_at(struct link *link, double due); /* READY, RESETTING: from then on it ends once nobody holds it */
void link__arm_ready(struct link *link);             /* READY: the first due of proof, age, recycling and heartbeat */
void link__start_protocol(struct link *link);
void link__arm_at(struct link *link, double due); /* when its state has lasted long enough */

/* io.c */
void link__wake(struct link *link, unsigned events);    /* as though these had come */
bool link__look(struct link *link);                     /* nobody holds it: false when it has ended */
void link__watch(struct link *link, unsigned interest); /* sets what the driver watches for */
int link__watch_descriptor(struct link *link, int fd, unsigned interest);
/** For hooks: without memory to watch it the link ends once the hook has returned, when its timer rings. */
void link__watch_or_end(struct link *link, int fd, unsigned interest);

/* words.c */
void link__quote(char *to, size_t size, const char *words, size_t n); /* a peer's, cut to fit, as plain characters */
void link__note(struct link_owner *owner, const char *text);          /* keeps the words of an end */
/** It is the last end that counts: reason, errno, and the words if they are on it. */
void link__note_end(struct link_owner *owner, enum link_reason reason, int system_errno);
/** An end is over: what was said on it is kept if it counted; on another one, it is of no use. */
void link__forget_words(struct link_owner *owner, enum link_reason reason);

/* channels, as the keeper leases them */
struct channel *link__lease(struct link *link, struct pool_lease *lease);        /* NULL: it cannot just now */
struct channel *link__lease_stream(struct link *link, struct pool_lease *lease); /* the same of a shared link */
enum link_give_back {
    LINK_CLEAN,
    LINK_CLEANING,
    LINK_UNCLEAN
};
enum link_give_back link__give_back(struct channel *channel, bool discard, enum link_reason *reason);
void link__give_stream_back(struct channel *channel, bool discard); /* the same of a shared link */
void link__told(struct channel *channel);                           /* the holder of one that is over has been told */
struct channel *link__own_channel(struct link *link);               /* of a link on its own: the owner's */
enum pool_fate link__fate(const struct channel *channel, bool safe_to_repeat);

static inline struct link_core *link__core(const struct link *link)
{
    return link->owner->core;
}
static inline enum link_state link__state(const struct link *link)
{
    return (enum link_state)link->fsm.state;
}
static inline bool link__is_open(const struct link *link)
{
    return link->fsm.state >= LINK_CONNECTING && link->fsm.state <= LINK_DRAINING;
}
static inline bool link__is_opening(const struct link *link)
{
    return link->fsm.state == LINK_CONNECTING || link->fsm.state == LINK_HANDSHAKING;
}
static inline bool link__is_shared(const struct link *link)
{
    return link->protocol.protocol->flags & PROTOCOL_SHARED;
}
static inline struct link_shared *link__shared(const struct link *link)
{
    return (struct link_shared *)(link + 1);
}
static inline struct link *link__of_shared(struct link_shared *shared)
{
    return (struct link *)(void *)shared - 1;
}
static inline size_t link__rounded(size_t n)
{
    return (n + 15) & ~(size_t)15;
}
static inline size_t link__shared_size(const struct protocol *protocol)
{
    return protocol->flags & PROTOCOL_SHARED ? link__rounded(sizeof(struct link_shared)) : 0;
}
static inline struct link_heartbeat *link__heartbeat(const struct link *link) /* with LINK_HEARS */
{
    return (struct link_heartbeat *)((char *)(link + 1) + link__shared_size(link->owner->protocol));
}
static inline bool link__is_suspect(const struct link *link) /* it has missed an answer */
{
    return link->bits & LINK_HEARS && link__heartbeat(link)->history.misses;
}
static inline bool link__is_unarmed(const struct link *link) /* a probe may have been due while it was leased whole */
{
    return link->bits & LINK_HEARS && link__heartbeat(link)->unarmed;
}
static inline bool link__owes(const struct link *link) /* exclusive: whoever had it now might get a probe's answer */
{
    return link->bits & LINK_HEARS && link__heartbeat(link)->owed;
}
static inline bool link__takes_parts(const struct channel *channel)
{
    return channel->state == CHANNEL_HELD && channel->events && channel->events->part;
}
static inline bool link__is_doubted(const struct link *link) /* lent to nobody until it has answered: link__doubt() */
{
    return link->bits & LINK_HEARS && link__heartbeat(link)->doubt;
}
static inline bool link__is_delivering(const struct link *link)
{
    return link__is_shared(link) && link__shared(link)->delivering;
}
static inline void link__set_room(struct link *link, unsigned said) /* shared: it is bounded by its host's own cap */
{
    unsigned most = link->owner->terms->max_channels;

    link__shared(link)->said = said;
    link__shared(link)->room = most && most < said ? most : said;
}
static inline bool link__is_full(const struct link *link) /* shared: nobody more is lent a channel just now */
{
    return link__shared(link)->n_used >= link__shared(link)->room;
}
static inline bool link__has_room(const struct link *link) /* for one more lease */
{
    if (link__is_doubted(link))
        return false;
    return link__is_shared(link) ? !link__is_full(link) : link->channel.state == CHANNEL_FREE && !link__owes(link);
}
static inline unsigned link__held(const struct link *link) /* channels out, those that are over and untold included */
{
    return link__is_shared(link) ? link__shared(link)->n_used : link->channel.state != CHANNEL_FREE;
}

unsigned link__promised(const struct link *link); /* of those, leased to such as have still to be told */

/* channel_send() by one who holds the channel. */
static inline int link__send(struct channel *channel, const void *bytes, size_t n)
{
    struct link *link = channel->link;
    int error;

    if (!link__is_shared(link) || !link->owner->protocol->send)
        return LINKPOOL_EOPTION;
    error = link->owner->protocol->send(&link->protocol, &link__stream_of(channel)->protocol, bytes, n);
    if (error)
        return error;
    channel->has_sent = true;
    if (channel->lease)
        channel->lease->bytes_sent += n;
    return 0;
}

/* Shared: bytes of an answer have come, whosesoever. */
static inline void link__note_answer(struct link *link)
{
    link__shared(link)->unanswered = 0;
    link__shared(link)->silences++;
}

/* channel_watch() of all there is, by one who holds the channel, and whose protocol tells of whole messages. */
static inline void link__listen(struct channel *channel, const struct channel_events *events)
{
    channel->events = events;
    channel->want = LINKPOOL_READ | LINKPOOL_WRITE;
}

/* The two ends of most leases: an exclusive link that is free, and one that comes back with nothing against it. */
static inline struct channel *link__lease_whole(struct link *link, struct pool_lease *lease)
{
    link->channel.state = CHANNEL_HELD;
    link->channel.lease = lease;
    link->bits = (uint16_t)(link->bits & ~(LINK_OF_LEASE | LINK_UNSURE));
    link->uses++;
    if (link->bits & LINK_HEARS)
        link__heartbeat_lent(link);
    return &link->channel;
}

static inline bool link__is_spotless(const struct link *link)
{
    return !(link->bits & (LINK_SHUT | LINK_PRIVATE | LINK_UNREAD | LINK_SENT_LAST | LINK_LENT)) && !link->fault &&
           !link->retire && link->fsm.state == LINK_READY && link->interest == LINKPOOL_READ && !link__is_doubted(link);
}

/* A read that came short in this turn has emptied the socket; one that filled its buffer may have left something. */
static inline void link__note_return(struct link *link, const struct driver *driver)
{
    uint32_t turn = (uint32_t)driver->turn;
    bool empty = link->bits & LINK_DRAINED_IN && link->turn == turn;

    if ((link->bits & LINK_MOVED && !empty) || link->bits & LINK_LENT)
        link->bits = (uint16_t)(link->bits | LINK_UNSURE);
    link->turn = turn;
}

static inline void link__free_whole(struct link *link, const struct driver *driver)
{
    link->channel.state = CHANNEL_FREE;
    link->channel.lease = NULL;
    link->channel.events = NULL;
    link->channel.data = NULL;
    link->channel.want = 0;
    link__note_return(link, driver);
    if (link__is_unarmed(link))
        link__heartbeat_sooner(link);
}

static inline void link__set_bits(struct link *link, unsigned clear, unsigned add)
{
    link->bits = (uint16_t)((link->bits & ~clear) | add);
}

/* within link/ */
bool link__was_ours(enum link_reason reason);
bool link__is_fault(enum link_reason reason);     /* neither ours nor an orderly leave of the peer's */
bool link__has_served(const struct link *link);   /* it has answered somebody, or lasted */
bool link__is_sent_away(const struct link *link); /* its peer has said that something is wrong */
enum link_kind_of_end link__kind_of_end(const struct link *link, enum link_reason reason); /* if it ended now */
static inline int link__leave_alive(
    struct link *link, uint64_t attempt) /* link__leave(); 0, or LINKPOOL_ELOST: its attempt is over */
{
    bool alive = link->fsm.generation == attempt && link__is_open(link) && !(link->bits & LINK_ENDING);

    link__leave(link__core(link));
    return alive ? 0 : LINKPOOL_ELOST;
}
enum link_reason link__what_is_unread(struct link *link); /* an unread end of file is not unread bytes: says which */
void link__take_observer(struct pool_observer *taken, const struct pool_observer *given);
void link__alone_stats(
    const struct link *link, struct link_stats *stats); /* adds what a link on its own knows; else nothing */
void link__ready(struct link *link);                    /* the protocol says so */
void link__free_memory(struct link *link);
void link__free_streams(struct link *link);
enum link_loser {
    LINK_LOST_BY_US,   /* the link ends, or its time is up: an answer may still come */
    LINK_LOST_BY_PEER, /* the peer ended the channel: none comes */
    LINK_LOST_UNDONE   /* the same, and it did nothing with what was sent */
};
void link__lose(struct channel *channel, enum link_reason reason, int system_errno, enum link_loser loser);
void link__tell_holder(struct link *link, unsigned events); /* exclusive: the descriptor's events, for its holder */

enum link_reason link__reason_of_errno(int error); /* of a socket call */
int link__parse_local(
    const char *text, struct link_address *address, char *why, size_t n); /* as link_address_parse(), port 0 allowed */

/* handles of attempts */
void link__forget_attempt(struct link *link);

#endif
