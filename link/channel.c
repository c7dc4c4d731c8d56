/* channel.c - what a holder does with its channel, and what it hears of it. */
#include <errno.h>

#include "link/internal.h"

/* ---- the holder's functions ---- */

/* What somebody listens for: wanting the rest would ring for nobody, for ever. */
static unsigned heard(const struct channel_events *events)
{
    unsigned read = events && events->readable ? LINKPOOL_READ : 0,
             write = events && events->writable ? LINKPOOL_WRITE : 0;

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
    if (want && !channel->events)
        return LINKPOOL_EINVAL;
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
    link__set_bits(link, LINK_UNREAD, 0);
    return 0;
}

/* Nothing is left to read, and that is known of this turn alone. */
static void found_empty(struct link *link)
{
    link__set_bits(link, LINK_UNREAD, LINK_DRAINED_IN);
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
        link__set_bits(link, LINK_SENT_LAST | LINK_UNREAD | LINK_DRAINED_IN, LINK_MOVED | LINK_ANSWERED);
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
        link__set_bits(link, LINK_DRAINED_IN, LINK_MOVED | LINK_SENT_LAST);
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
    return channel->state == CHANNEL_HELD ? link__send(channel, bytes, n) : LINKPOOL_ELOST;
}

int channel_shutdown(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD)
        return LINKPOOL_ELOST;
    if (link__is_shared(link) || !link->owner->transport->shutdown)
        return LINKPOOL_EOPTION;
    link__set_bits(link, 0, LINK_SHUT);
    return link->owner->transport->shutdown(&link->transport) ? (int)fault(channel, errno) : 0;
}

int channel_fd(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD || link__is_shared(link) ||
        !(link->owner->transport->flags & TRANSPORT_PLAIN_FD))
        return -1;
    link__set_bits(link, LINK_DRAINED_IN, LINK_LENT);
    return link->transport.fd;
}

void *channel_native(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD || link__is_shared(link) || !link->owner->transport->native)
        return NULL;
    link__set_bits(link, LINK_DRAINED_IN, LINK_LENT);
    return link->owner->transport->native(&link->transport);
}

void channel_keep_private(struct channel *channel)
{
    struct link *link = channel->link;

    if (channel->state != CHANNEL_HELD)
        return;
    link__set_bits(link, 0, LINK_PRIVATE);
    if (link__is_shared(link) && !link->retire) { /* it ends with the last of its channels, and takes no new one */
        link->retire = LINK_DISCARDED;
        link__core(link)->keeper->served(link);
    }
}

struct link *channel_link(const struct channel *channel)
{
    return channel->link;
}
struct pool_lease *channel_lease(const struct channel *channel)
{
    return channel->lease;
}
void channel_set_data(struct channel *channel, void *data)
{
    channel->data = data;
}
void *channel_data(const struct channel *channel)
{
    return channel->data;
}

/* ---- the descriptor's events, for the holder of an exclusive link ---- */

/* Something came that is not wanted now: it waits. An end would wait for ever where nobody gives the channel back. */
static void pause_reading(struct link *link)
{
    enum link_reason reason;

    link__set_bits(link, 0, LINK_UNREAD);
    link__watch(link, link->interest & ~(unsigned)LINKPOOL_READ);
    if (!link__core(link)->keeper->faulted || link->fault)
        return;
    if ((reason = link__what_is_unread(link)) != LINK_UNEXPECTED_DATA)
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
            link__set_bits(link, LINK_DRAINED_IN, LINK_UNREAD);
        channel->events->readable(channel);
    }
    /* That may have ended the lease, and begun another. */
    if (link->uses != use || link->fsm.generation != attempt || channel->state != CHANNEL_HELD)
        return;
    if (events & channel->want & LINKPOOL_WRITE)
        channel->events->writable(channel);
    if (link->uses == use && link->fsm.generation == attempt && channel->state == CHANNEL_HELD &&
        channel->want & LINKPOOL_READ)
        watch_held_back(link);
}
