/* framed_link.h - a link and a channel of the framed protocol from the inside, shared by the files framed*.c.
 *
 * framed.c has the hooks, framed_input.c what comes, framed_send.c what goes, framed_ids.c who waits for which answer.
 */
#ifndef LINKPOOL_LINK_FRAMED_LINK_H
#define LINKPOOL_LINK_FRAMED_LINK_H

#include <stdbool.h>

#include "link/framed_reader.h"
#include "link/framed_writer.h"
#include "link/internal.h"
#include "linkpool/framed.h"

enum framed_asking {
    FRAMED_FRESH,     /* nothing sent yet in this lease */
    FRAMED_REFUSED,   /* it is in the line of those who are owed protocol_writable() */
    FRAMED_QUEUED,    /* its request is in line, and nothing of it has gone */
    FRAMED_ASKED,     /* its request has gone, at least in part: it has a number */
    FRAMED_ANSWERING, /* its answer comes in pieces: it has no number any more */
    FRAMED_ANSWERED
};

struct framed_channel {
    struct framed_channel *prev, *next; /* refused: in that line; asked: `next` alone, in its bucket */
    union {
        struct framed_out *out; /* queued: its request */
        uint32_t id;            /* asked: its number */
        uint32_t need;          /* refused: bytes of its frame */
    };
    uint8_t stage; /* enum framed_asking */
    bool served;   /* it has had an answer in this lease */
    bool denied;   /* the peer is leaving and did nothing with it */
};

enum {
    FRAMED_FEW = 8,           /* buckets that need no allocation */
    FRAMED_LONG_CHAINS = 2,   /* requests a bucket from which on there are more of these */
    FRAMED_MAX_PONGS = 32,    /* PONGs in line: a peer that asks on and reads nothing is at fault */
    FRAMED_LAST_IDS = 1 << 20 /* numbers left from which on the link is replaced: those out may go on meanwhile */
};

/** Channels by the number of their request. Numbers are given in turn, so they spread evenly. */
struct framed_ids {
    struct framed_channel **buckets; /* `few`, as long as that is enough, or there is no memory */
    unsigned n_buckets, n;
    struct framed_channel *few[FRAMED_FEW];
};

struct framed_link {
    struct framed_reader reader;
    struct framed_writer writer;
    struct framed_ids ids;
    struct framed_channel *refused;   /* the oldest first */
    struct framed_channel *told;      /* it has just been told of room: it goes before those who still wait */
    struct framed_channel *answering; /* whose answer comes in pieces; NULL: nobody's, or that of one given up */
    uint64_t pings, pongs;            /* sent, and answered */
    size_t max_queue, max_channel_queue;
    uint32_t peer_payload; /* the largest it takes */
    uint32_t accepted;     /* leaving: the last number the peer takes */
    uint32_t unheard;      /* requests whose channel is over, and whose answer may still come */
    bool introduced;       /* HELLO_ACK has come */
    bool leaving;          /* GOAWAY has come */
    bool spent;            /* numbers run out: the link is being replaced */
    bool stuck;            /* the socket took less than it was given: there will be word of room */
    bool leaves;           /* the link is being closed: what is said is written at once */
};

static inline struct protocol_channel *framed__pc(struct framed_channel *channel)
{
    return &link__stream_of_state(channel)->protocol;
}

static inline struct framed_link *framed__of(const struct protocol_link *pl)
{
    return pl->state;
}

/* framed_ids.c */
void framed__ids_init(struct framed_ids *ids);
void framed__ids_grow(struct framed_ids *ids, const struct linkpool_env *env);
struct framed_channel *framed__ids_find(struct framed_ids *ids, uint32_t id); /* NULL: nobody waits for it */
void framed__ids_free(struct framed_ids *ids, const struct linkpool_env *env);
static inline struct framed_channel **framed__ids_bucket(struct framed_ids *ids, uint32_t id)
{
    return &ids->buckets[id & (ids->n_buckets - 1)];
}
static inline void framed__ids_put(struct framed_ids *ids, struct framed_channel *channel)
{
    struct framed_channel **bucket = framed__ids_bucket(ids, channel->id);

    channel->next = *bucket;
    *bucket = channel;
}
static inline void framed__ids_add(
    struct framed_ids *ids, const struct linkpool_env *env, struct framed_channel *channel)
{
    if (ids->n >= FRAMED_LONG_CHAINS * ids->n_buckets)
        framed__ids_grow(ids, env);
    framed__ids_put(ids, channel);
    ids->n++;
}
static inline struct framed_channel *framed__ids_take(
    struct framed_ids *ids, uint32_t id) /* NULL: nobody waits for it */
{
    struct framed_channel **at = framed__ids_bucket(ids, id), *channel;

    while ((channel = *at) && channel->id != id)
        at = &channel->next;
    if (channel) {
        *at = channel->next;
        channel->next = NULL;
        ids->n--;
    }
    return channel;
}

/* framed_send.c: each returns 0 or an error; after LINKPOOL_ELOST nothing may be touched */
int framed__request(struct protocol_link *pl, struct framed_channel *channel, const void *bytes, size_t n);
int framed__say(struct protocol_link *pl, uint8_t type, uint32_t id, const void *payload, size_t n);
int framed__flush(struct protocol_link *pl);
int framed__settle(struct protocol_link *pl); /* writes what waits, and tells those who were refused, in their order */
void framed__stop_waiting(struct framed_link *self, struct framed_channel *channel); /* it is owed nothing any more */

/* framed_input.c */
/** `short_is_all`: a read that came short has emptied the transport, and what it leaves rings again. */
int framed__input(struct protocol_link *pl, bool short_is_all);

/* framed_options.c */
void framed__options_take(struct framed_options *taken, const struct framed_options *given);

#endif
