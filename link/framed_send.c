/* framed_send.c - what goes out on a framed link: requests, and frames about the link itself.
 *
 * Small frames are gathered, and what one turn of the loop brings leaves in one write at its end, or sooner where that
 * is much, or room to write has come. Large ones the socket takes from where they lie. What it does not take is copied,
 * within bounds; who would go beyond them is refused, waits in line, and is told when there is room: the oldest first,
 * and nobody passes one who waits. */
#include <utlist.h>

#include "link/framed_link.h"

enum {
    PARTS = 64,      /* frames a write */
    SMALL = 4096,    /* bytes of payload up to which a frame is gathered, */
    MANY = 32 * 1024 /* and of gathered frames that are enough for a write */
};

/* ---- what is under way ---- */

static void on_begun(void *data, void *owner, uint32_t id)
{
    struct framed_link *self = data;
    struct framed_channel *channel = owner;

    channel->stage = FRAMED_ASKED;
    channel->id = id;
    framed__ids_add(&self->ids, self->writer.env, channel);
}

int framed__flush(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);
    struct iovec parts[PARTS];
    ssize_t sent;
    int n;

    self->stuck = false; /* also where all that waited was taken back meanwhile */
    while ((n = framed__gather(&self->writer, parts, PARTS))) {
        sent = protocol_write(pl, parts, n);
        self->stuck = sent == LINKPOOL_EAGAIN;
        if (self->stuck)
            return 0;
        if (sent < 0)
            return (int)sent;
        framed__took(&self->writer, (size_t)sent, on_begun, self);
    }
    return 0;
}

/* ---- writing ---- */

static inline int put(struct framed_link *self, const struct framed_message *message)
{
    struct framed_out *out = framed__put(&self->writer, message);
    struct framed_channel *channel = message->owner;

    if (!out)
        return LINKPOOL_ENOMEM;
    if (channel) {
        channel->stage = FRAMED_QUEUED;
        channel->out = out;
    }
    return 0;
}

/* Nothing is in line: what the socket takes is not copied. */
LINK_RARE static int write_now(struct protocol_link *pl, struct framed_message *message)
{
    struct framed_link *self = framed__of(pl);
    unsigned char head[FRAMED_HEAD];
    struct iovec parts[2];
    int n = framed__direct(&self->writer, message, head, parts);
    ssize_t sent = protocol_write(pl, parts, n);

    self->stuck = sent != (ssize_t)(FRAMED_HEAD + message->n);
    if (sent == LINKPOOL_EAGAIN)
        return put(self, message);
    if (sent < 0)
        return (int)sent;
    if (framed__sent(&self->writer, message, head, (size_t)sent))
        return protocol_fail(pl, LINK_NO_MEMORY, "no memory for the rest of a frame");
    if (message->owner)
        on_begun(self, message->owner, message->id);
    return 0;
}

static inline int gather(struct protocol_link *pl, const struct framed_message *message)
{
    struct framed_link *self = framed__of(pl);
    int error = put(self, message);

    if (error || self->stuck)
        return error;
    if (self->writer.waiting >= MANY)
        return framed__flush(pl);
    return self->writer.first->next ? 0 : protocol_later(pl); /* it was asked for with the first */
}

static inline int write_message(struct protocol_link *pl, struct framed_message *message)
{
    struct framed_link *self = framed__of(pl);
    int error;

    if (message->n <= SMALL && self->introduced && !self->leaves)
        return gather(pl, message);
    if (self->writer.first && !self->stuck && (error = framed__flush(pl)))
        return error;
    return self->writer.first ? put(self, message) : write_now(pl, message);
}

int framed__say(struct protocol_link *pl, uint8_t type, uint32_t id, const void *payload, size_t n)
{
    return write_message(pl, &(struct framed_message){.type = type, .id = id, .payload = payload, .n = n});
}

/* ---- bounds ---- */

static bool fits(const struct framed_link *self, size_t frame)
{
    if (!self->writer.first)
        return true;
    return frame <= self->max_channel_queue && self->writer.waiting + frame <= self->max_queue;
}

LINK_RARE static int refuse(struct framed_link *self, struct framed_channel *channel, size_t frame)
{
    channel->need = (uint32_t)frame;
    if (channel->stage != FRAMED_REFUSED)
        DL_APPEND(self->refused, channel);
    channel->stage = FRAMED_REFUSED;
    return LINKPOOL_EAGAIN;
}

void framed__stop_waiting(struct framed_link *self, struct framed_channel *channel)
{
    if (self->told == channel)
        self->told = NULL;
    if (channel->stage != FRAMED_REFUSED)
        return;
    DL_DELETE(self->refused, channel);
    channel->stage = channel->served ? FRAMED_ANSWERED : FRAMED_FRESH;
}

static int may_send(const struct framed_link *self, const struct framed_channel *channel, size_t n)
{
    if ((channel->stage >= FRAMED_QUEUED && channel->stage <= FRAMED_ANSWERING) || self->leaving)
        return LINKPOOL_ESTATE;
    if (self->writer.last_id + self->writer.waiting / FRAMED_HEAD >= FRAMED_MAX_ID)
        return LINKPOOL_ESTATE; /* each frame in line may be a request that takes a number */
    return n > self->peer_payload ? LINKPOOL_EINVAL : 0;
}

/* Others were refused, or it does not fit. @return 0: it is its turn. */
LINK_RARE static int make_room(struct protocol_link *pl, struct framed_channel *channel, size_t frame)
{
    struct framed_link *self = framed__of(pl);
    bool is_next = !self->refused || self->refused == channel || self->told == channel;
    int error;

    if (is_next && !fits(self, frame) && !self->stuck && (error = framed__flush(pl)))
        return error;
    if (!is_next || !fits(self, frame))
        return refuse(self, channel, frame);
    framed__stop_waiting(self, channel);
    return 0;
}

int framed__request(struct protocol_link *pl, struct framed_channel *channel, const void *bytes, size_t n)
{
    struct framed_link *self = framed__of(pl);
    int error = may_send(self, channel, n);

    if (!error && (self->refused || self->told || !fits(self, FRAMED_HEAD + n)))
        error = make_room(pl, channel, FRAMED_HEAD + n);
    if (error)
        return error;
    return write_message(
        pl, &(struct framed_message){.type = FRAMED_REQUEST, .owner = channel, .payload = bytes, .n = n});
}

static int tell_refused(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);

    while (self->refused && fits(self, self->refused->need)) {
        struct framed_channel *channel = self->refused;
        framed__stop_waiting(self, channel);
        self->told = channel;
        if (protocol_writable(framed__pc(channel)))
            return LINKPOOL_ELOST;
        self->told = NULL;
    }
    return 0;
}

int framed__settle(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);
    int error = framed__flush(pl);

    /* Each round tells somebody who was refused, and whoever is refused again waits for the socket. */
    while (!error && self->refused && fits(self, self->refused->need)) {
        if ((error = tell_refused(pl)))
            return error;
        error = framed__flush(pl);
    }
    return error;
}
