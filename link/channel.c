/* channel.c - channels: what a holder does with a ready link, and what is left of it at the return.
 *
 * An exclusive link has one channel, within it; a shared one has streams, from slabs that are kept until the link
 * goes, so that leasing on a warm link allocates nothing. */
#include <errno.h>
#include <utlist.h>

#include "link/internal.h"

static void set_bits(struct link *link, unsigned clear, unsigned add)
{
    link->bits = (uint16_t)((link->bits & ~clear) | add);
}

/* ---- streams ---- */

enum { STREAMS_A_SLAB = 8, STREAM_STATE = (sizeof(struct link_stream) + 15) & ~(size_t)15 /* where its state begins */ };

struct link_slab {
    struct link_slab *next;
};

static size_t stream_size(const struct link *link)
{
    return STREAM_STATE + ((link->owner->protocol->channel_size + 15) & ~(size_t)15);
}

static size_t slab_size(const struct link *link) { return 16 + STREAMS_A_SLAB * stream_size(link); }

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
        stream->protocol.state = link->owner->protocol->channel_size ? (char *)stream + STREAM_STATE : NULL;
        DL_PREPEND(shared->free, stream);
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

static struct link_stream *stream_of(struct channel *channel)
{
    return (struct link_stream *)((char *)channel - offsetof(struct link_stream, channel));
}

static void free_channel(struct channel *channel)
{
    struct link *link = channel->link;

    channel->state = CHANNEL_FREE;
    channel->lease = NULL;
    channel->events = NULL;
    channel->data = NULL;
    channel->want = 0;
    if (link__is_shared(link)) {
        struct link_shared *shared = link__shared(link);
        DL_DELETE(shared->used, stream_of(channel));
        DL_PREPEND(shared->free, stream_of(channel));
        shared->n_used--;
    }
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

static void tell_closed(struct channel *channel, bool cancelled)
{
    struct link *link = channel->link;
    struct link_core *core = link__core(link);

    if (!link->owner->protocol->close)
        return;
    core->hooks++;
    link->owner->protocol->close(&link->protocol, &stream_of(channel)->protocol, cancelled);
    core->hooks--;
}

static struct channel *lease_stream(struct link *link, struct pool_lease *lease)
{
    struct link_shared *shared = link__shared(link);
    const struct protocol *protocol = link->owner->protocol;

    if (!shared->free && add_slab(link))
        return NULL;
    struct link_stream *stream = shared->free;
    DL_DELETE(shared->free, stream);
    DL_APPEND(shared->used, stream);
    shared->n_used++;
    stream->channel.lease = lease;
    for (size_t i = 0; i < protocol->channel_size; i++)
        ((char *)stream->protocol.state)[i] = 0;
    if (protocol->open && tell_open(stream)) {
        free_channel(&stream->channel);
        shared->room = shared->n_used;
        return NULL;
    }
    stream->channel.state = CHANNEL_HELD; /* from here on: a hook that ends the link has no holder to tell */
    link->uses++;
    return &stream->channel;
}

/* ---- leasing ---- */

struct channel *link__lease(struct link *link, struct pool_lease *lease)
{
    if (link__is_shared(link))
        return lease_stream(link, lease);
    return link__lease_whole(link, lease);
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
static enum link_reason what_is_unread(struct link *link)
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

enum link_give_back link__give_back(struct channel *channel, bool discard, enum link_reason *reason)
{
    struct link *link = channel->link;

    if (link__is_shared(link)) {
        channel->state = CHANNEL_FREE; /* a hook that ends the link has no holder to tell */
        tell_closed(channel, discard);
        free_channel(channel);
        return LINK_CLEAN;
    }
    *reason = unclean(link, discard);
    if (*reason == LINK_UNEXPECTED_DATA && link->bits & LINK_UNREAD)
        *reason = what_is_unread(link);
    free_channel(channel);
    if (*reason)
        return LINK_UNCLEAN;
    link__note_return(link, link__core(link)->driver);
    if (!(link->interest & LINKPOOL_READ)) /* while reading was paused nothing that came was seen */
        set_bits(link, 0, LINK_UNSURE);
    if (link->interest != LINKPOOL_READ)
        link__watch(link, LINKPOOL_READ);
    if (link->owner->transport->reset || link->owner->protocol->released) {
        enum link_give_back answer = hooks_clean(link);
        if (answer == LINK_UNCLEAN)
            *reason = LINK_UNEXPECTED_DATA;
        return answer;
    }
    return LINK_CLEAN;
}

enum pool_fate link__fate(const struct channel *channel, bool safe_to_repeat)
{
    const struct pool_lease *lease = channel->lease;

    if (safe_to_repeat || !lease)
        return POOL_NOT_SENT;
    if (!link__is_shared(channel->link) && channel->link->bits & LINK_LENT)
        return POOL_UNKNOWN;
    if (lease->bytes_received)
        return POOL_PARTIAL;
    return lease->bytes_sent ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT;
}

void link__lose(struct channel *channel, enum link_reason reason, int system_errno, bool safe_to_repeat)
{
    struct link *link = channel->link;

    channel->state = CHANNEL_OVER; /* first: the hook may end the link, which tells those who hold */
    link->tells++;
    if (link__is_shared(link) && !(link->bits & LINK_ENDING))
        tell_closed(channel, true);
    link__core(link)->keeper->lost(channel, reason, system_errno, safe_to_repeat);
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

/* ---- the holder's functions ---- */

/* What somebody listens for: wanting the rest would ring for nobody, for ever. */
static unsigned heard(const struct channel_events *events)
{
    unsigned read = events && events->readable ? LINKPOOL_READ : 0, write = events && events->writable ? LINKPOOL_WRITE : 0;

    return read | write;
}

int channel_watch(struct channel *channel, const struct channel_events *events, unsigned want)
{
    if (!events || want & ~(unsigned)(LINKPOOL_READ | LINKPOOL_WRITE))
        return LINKPOOL_EINVAL;
    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ESTATE;
    channel->events = events;
    return channel_want(channel, want);
}

/* Held back bytes make no event: room to write, which does, stands for them. */
static void watch_held_back(struct link *link)
{
    const struct transport *transport = link->owner->transport;

    if (transport->pending && transport->pending(&link->transport))
        link__watch(link, link->interest | LINKPOOL_WRITE);
}

int channel_want(struct channel *channel, unsigned want)
{
    struct link *link = channel->link;
    unsigned watch;

    if (want & ~(unsigned)(LINKPOOL_READ | LINKPOOL_WRITE))
        return LINKPOOL_EINVAL;
    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ESTATE;
    want &= heard(channel->events);
    channel->want = (uint8_t)want;
    if (link__is_shared(link))
        return 0;
    /* Reading is paused only once something came that was not wanted: until then the kernel need not know. */
    watch = (link->interest & LINKPOOL_READ) | want;
    if (want & LINKPOOL_READ) {
        if (link->owner->transport->pending && link->owner->transport->pending(&link->transport))
            watch |= LINKPOOL_WRITE; /* held back bytes make no event: room to write, which does, stands for them */
    }
    if (watch != link->interest)
        link__watch(link, watch);
    return 0;
}

static void set_fault(struct link *link, enum link_reason reason, int error)
{
    link->fault = (uint8_t)reason;
    if (link__core(link)->keeper->faulted)
        link__core(link)->keeper->faulted(link, error);
}

static ssize_t fault(struct channel *channel, int error)
{
    struct link *link = channel->link;

    set_fault(link, link__reason_of_errno(error), error);
    if (channel->lease) {
        channel->lease->reason = (enum link_reason)link->fault;
        channel->lease->system_errno = error;
        channel->lease->fate = link__fate(channel, false);
    }
    return LINKPOOL_ELOST;
}

static ssize_t end_of_file(struct channel *channel)
{
    struct link *link = channel->link;

    if (!link->fault)
        set_fault(link, LINK_CLOSED_BY_PEER, 0);
    if (channel->lease) {
        channel->lease->reason = (enum link_reason)link->fault;
        channel->lease->fate = link__fate(channel, false);
    }
    link->bits = (uint16_t)(link->bits & ~LINK_UNREAD);
    return 0;
}

/* Nothing is left to read, and that is known of this turn alone. */
static void found_empty(struct link *link)
{
    set_bits(link, LINK_UNREAD, LINK_DRAINED_IN);
    link->turn = (uint32_t)link__core(link)->driver->turn;
}

ssize_t channel_read(struct channel *channel, void *bytes, size_t n)
{
    struct link *link = channel->link;
    struct iovec part = {bytes, n};
    ssize_t got;

    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ELOST;
    if (link__is_shared(link) || !link->owner->transport->readv)
        return LINKPOOL_EOPTION;
    if (!n)
        return LINKPOOL_EINVAL;
    got = link->owner->transport->readv(&link->transport, &part, 1);
    if (got > 0) {
        set_bits(link, LINK_SENT_LAST | LINK_UNREAD | LINK_DRAINED_IN, LINK_MOVED | LINK_ANSWERED);
        if ((size_t)got < n)
            found_empty(link);
        if (channel->lease)
            channel->lease->bytes_received += (uint64_t)got;
        return got;
    }
    if (got == 0)
        return end_of_file(channel);
    if (errno != EAGAIN && errno != EINTR)
        return fault(channel, errno);
    if (errno == EAGAIN)
        found_empty(link);
    return LINKPOOL_EAGAIN;
}

ssize_t channel_writev(struct channel *channel, const struct iovec *parts, int n)
{
    struct link *link = channel->link;
    ssize_t sent;

    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ELOST;
    if (link__is_shared(link) || !link->owner->transport->writev)
        return LINKPOOL_EOPTION;
    sent = link->owner->transport->writev(&link->transport, parts, n);
    if (sent > 0) {
        set_bits(link, LINK_DRAINED_IN, LINK_MOVED | LINK_SENT_LAST);
        if (channel->lease)
            channel->lease->bytes_sent += (uint64_t)sent;
        return sent;
    }
    if (sent == 0)
        return 0;
    return errno == EAGAIN || errno == EINTR ? LINKPOOL_EAGAIN : fault(channel, errno);
}

int channel_send(struct channel *channel, const void *bytes, size_t n)
{
    struct link *link = channel->link;
    int error;

    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ELOST;
    if (!link__is_shared(link) || !link->owner->protocol->send)
        return LINKPOOL_EOPTION;
    error = link->owner->protocol->send(&link->protocol, &stream_of(channel)->protocol, bytes, n);
    if (!error && channel->lease)
        channel->lease->bytes_sent += n;
    return error;
}

int channel_shutdown(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ELOST;
    if (link__is_shared(link) || !link->owner->transport->shutdown)
        return LINKPOOL_EOPTION;
    set_bits(link, 0, LINK_SHUT);
    return link->owner->transport->shutdown(&link->transport) ? (int)fault(channel, errno) : 0;
}

int channel_fd(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD || link__is_shared(link) || !(link->owner->transport->flags & TRANSPORT_PLAIN_FD))
        return -1;
    set_bits(link, LINK_DRAINED_IN, LINK_LENT);
    return link->transport.fd;
}

void *channel_native(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD || link__is_shared(link) || !link->owner->transport->native)
        return NULL;
    set_bits(link, LINK_DRAINED_IN, LINK_LENT);
    return link->owner->transport->native(&link->transport);
}

void channel_keep_private(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD)
        return;
    set_bits(link, 0, LINK_PRIVATE);
    if (link__is_shared(link) && !link->retire) { /* it ends with the last of its channels, and takes no new one */
        link->retire = LINK_DISCARDED;
        link__core(link)->keeper->served(link);
    }
}

struct link *channel_link(const struct channel *channel) { return channel->link; }
struct pool_lease *channel_lease(const struct channel *channel) { return channel->lease; }
void channel_set_data(struct channel *channel, void *data) { channel->data = data; }
void *channel_data(const struct channel *channel) { return channel->data; }

/* ---- the descriptor's events, for the holder of an exclusive link ---- */

/* Something came that is not wanted now: it waits. An end would wait for ever where nobody gives the channel back. */
static void pause_reading(struct link *link)
{
    enum link_reason reason;

    set_bits(link, 0, LINK_UNREAD);
    link__watch(link, link->interest & ~(unsigned)LINKPOOL_READ);
    if (!link__core(link)->keeper->faulted || link->fault)
        return;
    if ((reason = what_is_unread(link)) != LINK_UNEXPECTED_DATA)
        set_fault(link, reason, link->owner->fail_errno);
}

void link__tell_holder(struct link *link, unsigned events)
{
    struct channel *channel = &link->channel;
    uint32_t use = link->uses;
    uint64_t attempt = link->fsm.generation;
    size_t (*pending)(const struct transport_link *) = link->owner->transport->pending;

    if (pending && pending(&link->transport))
        events |= LINKPOOL_READ;
    if (events & LINKPOOL_READ && !(channel->want & LINKPOOL_READ))
        pause_reading(link);
    if (events & LINKPOOL_WRITE && !(channel->want & LINKPOOL_WRITE))
        link__watch(link, link->interest & ~(unsigned)LINKPOOL_WRITE);
    events &= channel->want;
    if (events & LINKPOOL_READ) {
        if (!(link->bits & LINK_LENT)) /* until it is read */
            set_bits(link, LINK_DRAINED_IN, LINK_UNREAD);
        channel->events->readable(channel);
    }
    /* That may have ended the lease, and begun another. */
    if (link->uses != use || link->fsm.generation != attempt || channel->state != CHANNEL_HELD)
        return;
    if (events & channel->want & LINKPOOL_WRITE)
        channel->events->writable(channel);
    if (link->uses == use && link->fsm.generation == attempt && channel->state == CHANNEL_HELD && channel->want & LINKPOOL_READ)
        watch_held_back(link);
}
