/* shared.c - see shared.h. Channel 0 is the protocol's own: what comes back on it is swallowed. */
#include "tests/fakes/shared.h"

#include <stdint.h>
#include <string.h>

enum {
    FRAME = 4
};

struct shared_link {
    unsigned char in[FRAME], out[FRAME];
    size_t n_in, n_out; /* of the frame that comes, and what is left of the one that goes */
    uint16_t last;
};

struct shared_channel {
    uint16_t id;
    bool refused; /* it is owed protocol_writable() */
};

static const struct fake_shared_ways *ways(const struct protocol_link *pl)
{
    static const struct fake_shared_ways none;

    return pl->protocol->config ? pl->protocol->config : &none;
}

static int flush(struct protocol_link *pl)
{
    struct shared_link *self = pl->state;
    struct iovec part = {self->out + FRAME - self->n_out, self->n_out};
    ssize_t sent = self->n_out ? protocol_write(pl, &part, 1) : 0;

    if (sent > 0)
        self->n_out -= (size_t)sent;
    return sent == LINKPOOL_EAGAIN ? 0 : sent < 0 ? (int)sent : 0;
}

static int speak(struct protocol_link *pl, uint16_t id, unsigned char letter)
{
    struct shared_link *self = pl->state;
    unsigned char frame[FRAME] = {(unsigned char)(id >> 8), (unsigned char)id, letter, 0};

    if (self->n_out)
        return LINKPOOL_EAGAIN;
    memcpy(self->out, frame, FRAME);
    self->n_out = FRAME;
    return flush(pl);
}

static struct protocol_channel *find(struct protocol_link *pl, unsigned id)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        if (((struct shared_channel *)pc->state)->id == id)
            return pc;
    return NULL;
}

static int let_write(struct protocol_link *pl)
{
    const struct shared_link *self = pl->state;
    struct protocol_channel *pc = NULL;

    while (!self->n_out && (pc = protocol_next_channel(pl, pc))) {
        struct shared_channel *channel = pc->state;
        if (!channel->refused)
            continue;
        channel->refused = false;
        if (protocol_writable(pc))
            return LINKPOOL_ELOST;
        pc = NULL; /* that may have opened and closed any: from the front, each is told once */
    }
    return 0;
}

static int deliver(struct protocol_link *pl)
{
    struct shared_link *self = pl->state;
    unsigned char letter = self->in[2];
    struct protocol_channel *pc = find(pl, (unsigned)self->in[0] << 8 | self->in[1]);

    self->n_in = 0;
    if (!pc)
        return 0;
    if (letter == '!')
        return protocol_deliver_error(pc, letter, "?", 1);
    return protocol_takes_parts(pc) ? protocol_deliver_part(pc, &letter, 1, true) : protocol_deliver(pc, &letter, 1);
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    struct shared_link *self = pl->state;
    ssize_t got;

    if (events & LINKPOOL_WRITE && (flush(pl) || let_write(pl)))
        return LINKPOOL_ELOST;
    while ((got = protocol_read(pl, self->in + self->n_in, FRAME - self->n_in)) > 0) {
        self->n_in += (size_t)got;
        if (self->n_in == FRAME && deliver(pl))
            return LINKPOOL_ELOST;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct shared_link *self = pl->state;
    struct shared_channel *channel = pc->state;

    if (ways(pl)->refuses)
        return -1;
    self->last = self->last == UINT16_MAX ? 1 : (uint16_t)(self->last + 1);
    channel->id = self->last;
    return ways(pl)->speaks_at_open && speak(pl, 0, 'o') == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    struct shared_channel *channel = pc->state;
    int error = n ? speak(pl, channel->id, *(const unsigned char *)bytes) : 0;

    channel->refused = error == LINKPOOL_EAGAIN;
    return error;
}

static void on_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    (void)pc, (void)cancelled;
    if (ways(pl)->speaks_at_close)
        speak(pl, 0, 'c');
}

static void on_leave(struct protocol_link *pl)
{
    if (ways(pl)->speaks_at_leave)
        speak(pl, 0, 'l');
}

const struct protocol fake_shared = {
    .size = sizeof(struct protocol),
    .name = "fake_shared",
    .flags = PROTOCOL_SHARED,
    .max_channels = 3,
    .link_size = sizeof(struct shared_link),
    .channel_size = sizeof(struct shared_channel),
    .input = on_input,
    .open = on_open,
    .send = on_send,
    .close = on_close,
    .leave = on_leave,
};
