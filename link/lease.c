/* lease.c - channels as a keeper leases them: out, back, and taken away.
 *
 * An exclusive link has one channel, within it; a shared one has streams, from slabs that are kept until the link
 * goes, so that leasing on a warm link allocates nothing. */
#include <string.h>
#include <utlist.h>

#include "link/internal.h"

/* ---- streams ---- */

enum {
    STREAMS_A_SLAB = 8
};

struct link_slab {
    struct link_slab *next;
};

static size_t stream_size(const struct link *link)
{
    return LINK_STREAM_STATE + ((link->owner->protocol->channel_size + 15) & ~(size_t)15);
}

static size_t slab_size(const struct link *link)
{
    return 16 + STREAMS_A_SLAB * stream_size(link);
}

static int add_slab(struct link *link)
{
    struct link_shared *shared = link__shared(link);
    struct link_slab *slab = link__alloc(link__core(link)->env, slab_size(link));

    if (!slab)
        return LINKPOOL_ENOMEM;
    slab->next = shared->slabs;
    shared->slabs = slab;
    for (size_t i = 0; i < STREAMS_A_SLAB; i++) {
        struct link_stream *stream = (struct link_stream *)((char *)slab + 16 + i * stream_size(link));
        stream->channel.link = link;
        stream->protocol.channel = &stream->channel;
        stream->protocol.state = link->owner->protocol->channel_size ? (char *)stream + LINK_STREAM_STATE : NULL;
        LL_PREPEND(shared->free, stream);
    }
    shared->n_streams += STREAMS_A_SLAB;
    return 0;
}

void link__free_streams(struct link *link)
{
    struct link_shared *shared = link__shared(link);

    while (shared->slabs) {
        struct link_slab *slab = shared->slabs;
        shared->slabs = slab->next;
        link__release(link__core(link)->env, slab, slab_size(link));
    }
}

static void clear(struct channel *channel)
{
    channel->state = CHANNEL_FREE;
    channel->lease = NULL;
    channel->events = NULL;
    channel->data = NULL;
    channel->want = 0;
    channel->promised = false;
    channel->has_sent = false;
}

static void free_stream(struct link_stream *stream)
{
    struct link_shared *shared = link__shared(stream->channel.link);

    clear(&stream->channel);
    DL_DELETE(shared->used, stream);
    LL_PREPEND(shared->free, stream);
    shared->n_used--;
}

static void free_channel(struct channel *channel)
{
    if (link__is_shared(channel->link))
        free_stream(link__stream_of(channel));
    else
        clear(channel);
}

/* The hooks of leasing run inside the user's own calls: while they do, no holder is called (protocol_deliver()). */
static int tell_open(struct link_stream *stream)
{
    struct link *link = stream->channel.link;
    struct link_core *core = link__core(link);
    int answer;

    core->hooks++;
    answer = link->owner->protocol->open(&link->protocol, &stream->protocol);
    core->hooks--;
    return answer;
}

static void tell_closed(struct link_stream *stream, bool cancelled)
{
    struct link *link = stream->channel.link;
    const struct link_owner *owner = link->owner;

    if (!owner->protocol->close)
        return;
    owner->core->hooks++;
    owner->protocol->close(&link->protocol, &stream->protocol, cancelled);
    owner->core->hooks--;
}

/* The state of a channel is rounded up to 16 bytes, and most are of few: a call of memset() takes longer than those. */
static inline void clear_state(const struct link_stream *stream, size_t size)
{
    char *state = stream->protocol.state;

    if (size > 32) {
        memset(state, 0, size);
        return;
    }
    if (size)
        memset(state, 0, 16);
    if (size > 16)
        memset(state + 16, 0, 16);
}

struct channel *link__lease_stream(struct link *link, struct pool_lease *lease)
{
    struct link_shared *shared = link__shared(link);
    const struct protocol *protocol = link->owner->protocol;

    if (!shared->free && add_slab(link))
        return NULL;
    struct link_stream *stream = shared->free;
    shared->free = stream->next;
    DL_APPEND(shared->used, stream);
    shared->n_used++;
    stream->channel.lease = lease;
    clear_state(stream, protocol->channel_size);
    if (protocol->open && tell_open(stream)) {
        free_stream(stream);
        link__set_room(link, shared->n_used);
        return NULL;
    }
    stream->channel.state = CHANNEL_HELD; /* from here on: a hook that ends the link has no holder to tell */
    link->uses++;
    if (shared->n_used == 1)
        link__heartbeat_lent(link);
    return &stream->channel;
}

/* ---- leasing ---- */

struct channel *link__lease(struct link *link, struct pool_lease *lease)
{
    if (link__is_shared(link))
        return link__lease_stream(link, lease);
    return link__lease_whole(link, lease);
}

unsigned link__promised(const struct link *link)
{
    const struct link_stream *stream;
    unsigned n = 0;

    if (!link__is_shared(link))
        return link->channel.promised;
    DL_FOREACH (link__shared(link)->used, stream)
        n += stream->channel.promised;
    return n;
}

/* Why an exclusive link given back cannot be lent again; LINK_NO_REASON: it is clean. */
static enum link_reason unclean(struct link *link, bool discard)
{
    bool one_way = link->owner->protocol->flags & PROTOCOL_ONE_WAY;

    if (link->fault)
        return (enum link_reason)link->fault;
    if (discard || link->bits & (LINK_SHUT | LINK_PRIVATE))
        return LINK_DISCARDED;
    if (link->bits & LINK_UNREAD || (link->bits & LINK_SENT_LAST && !one_way))
        return LINK_UNEXPECTED_DATA;
    if (link->owner->transport->pending && link->owner->transport->pending(&link->transport))
        return LINK_UNEXPECTED_DATA;
    return (enum link_reason)link->retire;
}

static enum link_give_back hooks_clean(struct link *link)
{
    const struct link_owner *owner = link->owner;
    int answer;

    if (owner->transport->reset && owner->transport->reset(&link->transport))
        return LINK_UNCLEAN;
    if (!owner->protocol->released)
        return LINK_CLEAN;
    owner->core->hooks++;
    answer = owner->protocol->released(&link->protocol);
    owner->core->hooks--;
    return answer == PROTOCOL_CLEAN ? LINK_CLEAN : answer == PROTOCOL_RESETTING ? LINK_CLEANING : LINK_UNCLEAN;
}

/* An unread end of file is not unread bytes: say which. */
enum link_reason link__what_is_unread(struct link *link)
{
    switch (link->owner->transport->idle(&link->transport)) {
    case TRANSPORT_EOF:
        return LINK_CLOSED_BY_PEER;
    case TRANSPORT_BROKEN:
        return LINK_RESET;
    default:
        return LINK_UNEXPECTED_DATA;
    }
}

void link__give_stream_back(struct channel *channel, bool discard)
{
    struct link_stream *stream = link__stream_of(channel);

    channel->state = CHANNEL_FREE; /* a hook that ends the link has no holder to tell */
    tell_closed(stream, discard);
    free_stream(stream);
}

enum link_give_back link__give_back(struct channel *channel, bool discard, enum link_reason *reason)
{
    struct link *link = channel->link;

    if (link__is_shared(link)) {
        link__give_stream_back(channel, discard);
        return LINK_CLEAN;
    }
    *reason = unclean(link, discard);
    if (*reason == LINK_UNEXPECTED_DATA && link->bits & LINK_UNREAD)
        *reason = link__what_is_unread(link);
    free_channel(channel);
    if (*reason)
        return LINK_UNCLEAN;
    link__note_return(link, link__core(link)->driver);
    if (!(link->interest & LINKPOOL_READ)) /* while reading was paused nothing that came was seen */
        link__set_bits(link, 0, LINK_UNSURE);
    if (link->interest != LINKPOOL_READ)
        link__watch(link, LINKPOOL_READ);
    if (link->owner->transport->reset || link->owner->protocol->released) {
        enum link_give_back answer = hooks_clean(link);
        if (answer == LINK_UNCLEAN)
            *reason = LINK_UNEXPECTED_DATA;
        if (answer != LINK_CLEAN)
            return answer;
    }
    if (link__is_unarmed(link))
        link__heartbeat_sooner(link);
    return LINK_CLEAN;
}

static bool has_sent(const struct channel *channel, const struct protocol *protocol)
{
    if (link__is_shared(channel->link) && protocol->unsent)
        return !protocol->unsent(&link__stream_of((struct channel *)channel)->protocol);
    return channel->lease->bytes_sent || channel->has_sent;
}

static bool is_answered(const struct channel *channel, const struct protocol *protocol)
{
    if (channel->lease->bytes_received)
        return true;
    return link__is_shared(channel->link) && protocol->answering &&
           protocol->answering(&link__stream_of((struct channel *)channel)->protocol);
}

enum pool_fate link__fate(const struct channel *channel, bool safe_to_repeat)
{
    const struct link *link = channel->link;
    const struct protocol *protocol = link->owner->protocol;

    if (safe_to_repeat)
        return POOL_NOT_SENT;
    if (!link__is_shared(link) && link->bits & LINK_LENT)
        return POOL_UNKNOWN;
    if (!has_sent(channel, protocol))
        return POOL_NOT_SENT;
    return is_answered(channel, protocol) ? POOL_PARTIAL : POOL_SENT_NO_ANSWER;
}

void link__lose(struct channel *channel, enum link_reason reason, int system_errno, enum link_loser loser)
{
    struct link *link = channel->link;

    channel->state = CHANNEL_OVER; /* first: the hook may end the link, which tells those who hold */
    link->tells++;
    if (link__is_shared(link) && !(link->bits & LINK_ENDING))
        tell_closed(link__stream_of(channel), loser == LINK_LOST_BY_US);
    link__core(link)->keeper->lost(channel, reason, system_errno, loser == LINK_LOST_UNDONE);
}

struct channel *link__own_channel(struct link *link)
{
    return link__is_shared(link) ? &link__shared(link)->used->channel : &link->channel;
}

void link__told(struct channel *channel)
{
    channel->link->tells--;
    free_channel(channel);
}
