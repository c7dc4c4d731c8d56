/* protocol.c - what protocols may ask of the library, and the plainest protocol. */
#include <errno.h>

#include "link/internal.h"

static struct link_stream *stream_of(struct protocol_channel *pc)
{
    return (struct link_stream *)((char *)pc - offsetof(struct link_stream, protocol));
}

ssize_t protocol_read(struct protocol_link *pl, void *bytes, size_t n)
{
    struct iovec part = {bytes, n};
    struct link *link = pl->link;
    ssize_t got;

    if (!link->owner->transport->readv)
        return LINKPOOL_EOPTION;
    if (link->bits & LINK_ENDING)
        return LINKPOOL_ELOST;
    got = link->owner->transport->readv(&link->transport, &part, 1);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return LINKPOOL_EAGAIN;
    if (got == 0)
        link__end(link, LINK_CLOSED_BY_PEER, 0);
    else
        link__end(link, link__reason_of_errno(errno), errno);
    return LINKPOOL_ELOST;
}

ssize_t protocol_write(struct protocol_link *pl, const struct iovec *parts, int n)
{
    struct link *link = pl->link;
    size_t all = 0;
    ssize_t sent;

    if (!link->owner->transport->writev)
        return LINKPOOL_EOPTION;
    if (link->transport.fd < 0 && link->transport.transport->flags & TRANSPORT_PLAIN_FD)
        return LINKPOOL_ELOST;
    for (int i = 0; i < n; i++)
        all += parts[i].iov_len;
    sent = link->owner->transport->writev(&link->transport, parts, n);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        link__end(link, link__reason_of_errno(errno), errno); /* while it ends already, this is ignored */
        return LINKPOOL_ELOST;
    }
    if (sent >= 0 && (size_t)sent == all) {
        if (link->interest & LINKPOOL_WRITE)
            link__watch(link, LINKPOOL_READ);
        return sent;
    }
    link__watch(link, LINKPOOL_READ | LINKPOOL_WRITE);
    return sent > 0 ? sent : LINKPOOL_EAGAIN;
}

int protocol_later(struct protocol_link *pl)
{
    struct link *link = pl->link;

    if (!link__is_shared(link))
        return LINKPOOL_EOPTION;
    if (!(link->bits & LINK_ENDING))
        link__gathers(link);
    return 0;
}

int protocol_ready(struct protocol_link *pl)
{
    if (!pl || pl->link->bits & LINK_ENDING)
        return LINKPOOL_ELOST;
    struct link *link = pl->link;
    uint64_t attempt = link->fsm.generation;

    link__enter(link__core(link));
    link__ready(link);
    return link__leave_alive(link, attempt);
}

int protocol_fail(struct protocol_link *pl, enum link_reason reason, const char *text)
{
    if (!pl)
        return LINKPOOL_ELOST;
    transport_fail(&pl->link->transport, reason, 0, text);
    link__end(pl->link, reason, 0);
    return LINKPOOL_ELOST;
}

int protocol_set_room(struct protocol_link *pl, unsigned channels)
{
    if (!pl)
        return LINKPOOL_ELOST;
    struct link *link = pl->link;
    uint64_t attempt = link->fsm.generation;

    if (!link__is_shared(link))
        return LINKPOOL_EOPTION;
    link__enter(link__core(link));
    link__set_room(link, channels);
    if (link__state(link) == LINK_READY)
        link__core(link)->keeper->served(link);
    return link__leave_alive(link, attempt);
}

/* Of those who have it, does anybody stay? */
static bool is_left(const struct link *link, bool (*processed)(const struct protocol_channel *pc))
{
    if (!link__is_shared(link))
        return link__held(link);
    for (const struct link_stream *stream = link__shared(link)->used; stream; stream = stream->next)
        if (stream->channel.state == CHANNEL_HELD && (!processed || processed(&stream->protocol)))
            return true;
    return false;
}

static void deny(struct link *link, bool (*processed)(const struct protocol_channel *pc))
{
    for (struct link_stream *stream = link__shared(link)->used, *next; stream; stream = next) {
        next = stream->next;
        if (stream->channel.state == CHANNEL_HELD && !processed(&stream->protocol))
            link__lose(&stream->channel, (enum link_reason)link->retire, 0, LINK_LOST_UNDONE);
    }
}

int protocol_going(struct protocol_link *pl, bool (*processed)(const struct protocol_channel *pc),
    enum link_reason reason, const char *text)
{
    if (!pl || pl->link->bits & LINK_ENDING)
        return LINKPOOL_ELOST;
    struct link *link = pl->link;
    uint64_t attempt = link->fsm.generation;

    if (link__is_opening(link))
        return protocol_fail(pl, reason ? reason : LINK_CLOSED_BY_PEER, text ? text : "the peer is leaving");
    link__enter(link__core(link));
    link__led_away(link, reason, text, is_left(link, processed));
    /* After that: those that are put back in line are not given it again. */
    if (processed && link__is_shared(link) && link__state(link) == LINK_DRAINING)
        deny(link, processed);
    link__drained(link);
    return link__leave_alive(link, attempt);
}

/** What the peer said to a channel: a message, a piece of one, or, with an error's code, words. */
struct said {
    enum {
        SAID_ALL,
        SAID_PART,
        SAID_ERROR
    } what;
    const void *bytes;
    size_t n;
    uint32_t code;
    bool is_last;
};

LINK_OFTEN static bool listens(const struct channel_events *events, const struct said *said)
{
    if (!events)
        return false;
    switch (said->what) {
    case SAID_PART:
        return events->part;
    case SAID_ERROR:
        return events->error;
    default:
        return events->message;
    }
}

LINK_OFTEN static void tell(struct channel *channel, const struct said *said)
{
    if (said->what == SAID_PART)
        channel->events->part(channel, said->bytes, said->n, said->is_last);
    else if (said->what == SAID_ERROR)
        channel->events->error(channel, said->code, said->bytes, said->n);
    else
        channel->events->message(channel, said->bytes, said->n);
}

/* The bytes may be the protocol's, which its end frees: a link given back meanwhile ends only now. */
LINK_OFTEN static void hear(struct channel *channel, const struct said *said)
{
    struct link *link = channel->link;

    link__shared(link)->delivering++;
    tell(channel, said);
    if (--link__shared(link)->delivering || link__held(link))
        return;
    if (link__state(link) == LINK_DRAINING)
        link__drained(link);
    else if (link__state(link) == LINK_READY && link->retire)
        link__core(link)->keeper->served(link);
}

LINK_OFTEN static int deliver(struct protocol_channel *pc, const struct said *said)
{
    struct channel *channel = &stream_of(pc)->channel;
    struct link *link = channel->link;
    uint64_t attempt = link->fsm.generation;

    if (link__core(link)->hooks)
        return LINKPOOL_ESTATE;
    link__enter(link__core(link));
    if (channel->state != CHANNEL_HELD)
        return link__leave_alive(link, attempt);  /* given up meanwhile: swallowed */
    if (said->what != SAID_PART || said->is_last) /* one that hangs up before the end has not answered */
        link__set_bits(link, 0, LINK_ANSWERED);
    if (channel->lease)
        channel->lease->bytes_received += said->n;
    if (listens(channel->events, said))
        hear(channel, said);
    return link__leave_alive(link, attempt);
}

int protocol_deliver(struct protocol_channel *pc, const void *bytes, size_t n)
{
    return deliver(pc, &(struct said){.bytes = bytes, .n = n});
}

int protocol_deliver_error(struct protocol_channel *pc, uint32_t code, const void *words, size_t n)
{
    return deliver(pc, &(struct said){.what = SAID_ERROR, .bytes = words, .n = n, .code = code});
}

int protocol_deliver_part(struct protocol_channel *pc, const void *bytes, size_t n, bool last)
{
    return deliver(pc, &(struct said){.what = SAID_PART, .bytes = bytes, .n = n, .is_last = last});
}

bool protocol_takes_parts(const struct protocol_channel *pc)
{
    return link__takes_parts(pc->channel);
}

int protocol_writable(struct protocol_channel *pc)
{
    struct channel *channel = &stream_of(pc)->channel;
    struct link *link = channel->link;
    uint64_t attempt = link->fsm.generation;

    if (link__core(link)->hooks)
        return LINKPOOL_ESTATE;
    link__enter(link__core(link));
    if (channel->state == CHANNEL_HELD && channel->events && channel->events->writable)
        channel->events->writable(channel);
    return link__leave_alive(link, attempt);
}

int protocol_end(struct protocol_channel *pc, enum link_reason reason, bool safe_to_repeat)
{
    struct channel *channel = &stream_of(pc)->channel;
    struct link *link = channel->link;
    uint64_t attempt = link->fsm.generation;

    link__enter(link__core(link));
    if (channel->state == CHANNEL_HELD)
        link__lose(channel, reason, 0, safe_to_repeat ? LINK_LOST_UNDONE : LINK_LOST_BY_PEER);
    return link__leave_alive(link, attempt);
}

struct protocol_channel *protocol_next_channel(struct protocol_link *pl, const struct protocol_channel *after)
{
    struct link_stream *stream;

    if (!link__is_shared(pl->link))
        return NULL;
    stream = after ? stream_of((struct protocol_channel *)after)->next : link__shared(pl->link)->used;
    while (stream && stream->channel.state != CHANNEL_HELD)
        stream = stream->next;
    return stream ? &stream->protocol : NULL;
}

const struct linkpool_env *protocol_env(const struct protocol_link *pl)
{
    return link__core(pl->link)->env;
}

const struct protocol protocol_raw = {.size = sizeof(struct protocol), .name = "raw"};
