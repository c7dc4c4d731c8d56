/* mux.c - see mux.h. Frames are small and asked for one at a time: what the socket does not take ends the link. */
#include "mux.h"

struct mux_link {
    unsigned char in[MUX_FRAME];
    size_t n;
    unsigned char last; /* channel given out */
    bool greeted;
};

struct mux_channel {
    unsigned char id;
};

static struct mux_counts *counts(const struct protocol_link *pl)
{
    return (struct mux_counts *)pl->protocol->config;
}

static int say(struct protocol_link *pl, char kind, unsigned char id, unsigned char value)
{
    unsigned char frame[MUX_FRAME] = {(unsigned char)kind, id, value};
    struct iovec part = {frame, sizeof frame};

    switch (protocol_write(pl, &part, 1)) {
    case MUX_FRAME:
        return 0;
    case LINKPOOL_ELOST:
        return LINKPOOL_ELOST;
    default:
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "the server does not listen");
    }
}

static struct protocol_channel *find(struct protocol_link *pl, unsigned char id)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        if (((struct mux_channel *)pc->state)->id == id)
            return pc;
    return NULL;
}

static int take_room(struct protocol_link *pl, unsigned channels)
{
    struct mux_link *self = pl->state;
    bool first = !self->greeted;

    counts(pl)->rooms++;
    self->greeted = true;
    if (protocol_set_room(pl, channels))
        return LINKPOOL_ELOST;
    return first ? protocol_ready(pl) : 0;
}

static int take_answer(struct protocol_link *pl, unsigned char id, unsigned char value)
{
    struct protocol_channel *pc = find(pl, id);

    return pc ? protocol_deliver(pc, &value, 1) : 0; /* else its holder has gone: swallowed */
}

static int take(struct protocol_link *pl, const unsigned char *frame)
{
    switch (frame[0]) {
    case MUX_ROOM:
        return take_room(pl, frame[2]);
    case MUX_ANSWER:
        return take_answer(pl, frame[1], frame[2]);
    case MUX_PONG:
        return protocol_pong(pl);
    case MUX_GOING:
        return protocol_going(pl, NULL, LINK_NO_REASON, NULL);
    case MUX_NOTICE:
        counts(pl)->notices++;
        return 0;
    default:
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "no such frame");
    }
}

static int mux_input(struct protocol_link *pl, unsigned events)
{
    struct mux_link *self = pl->state;
    ssize_t got;

    (void)events;
    while ((got = protocol_read(pl, self->in + self->n, MUX_FRAME - self->n)) > 0) {
        self->n += (size_t)got;
        if (self->n < MUX_FRAME)
            continue;
        self->n = 0;
        if (take(pl, (const unsigned char[]){self->in[0], self->in[1], self->in[2]}))
            return LINKPOOL_ELOST;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

/* All that a server says unasked is in order. */
static int mux_idle_input(struct protocol_link *pl)
{
    struct mux_counts *all = counts(pl);
    unsigned before = all->notices;

    if (mux_input(pl, LINKPOOL_READ))
        return LINKPOOL_ELOST;
    all->idle_notices += all->notices - before;
    return 1;
}

static int mux_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct mux_link *self = pl->state;

    ((struct mux_channel *)pc->state)->id = ++self->last;
    counts(pl)->opened++;
    return 0;
}

static int mux_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    return n ? say(pl, MUX_ASK, ((struct mux_channel *)pc->state)->id, *(const unsigned char *)bytes) : 0;
}

static void mux_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    (void)pc, (void)cancelled;
    counts(pl)->closed++;
}

static int mux_ping(struct protocol_link *pl)
{
    return say(pl, MUX_PING, 0, 0);
}

static void mux_leave(struct protocol_link *pl)
{
    say(pl, MUX_LEAVE, 0, 0);
}

static void mux_end(struct protocol_link *pl)
{
    counts(pl)->ended++;
}

/* The server speaks first. */
static int mux_start(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

const struct protocol mux = {
    .size = sizeof(struct protocol),
    .name = "mux",
    .flags = PROTOCOL_SHARED,
    .max_channels = 3,
    .link_size = sizeof(struct mux_link),
    .channel_size = sizeof(struct mux_channel),
    .start = mux_start,
    .input = mux_input,
    .idle_input = mux_idle_input,
    .open = mux_open,
    .send = mux_send,
    .close = mux_close,
    .ping = mux_ping,
    .leave = mux_leave,
    .end = mux_end,
};
