/* pinging.c - see pinging.h. */
#include "tests/fakes/pinging.h"

#include <string.h>

enum {
    FRAME = 2
};

struct pinging_link {
    unsigned char in[FRAME], out[64];
    size_t n_in, n_out; /* of the frame that comes, and what there was no room for yet */
    unsigned char last;
};

struct pinging_channel {
    unsigned char id;
};

static struct fake_pinging *of(const struct protocol_link *pl)
{
    return (struct fake_pinging *)pl->protocol->config;
}

static bool is_shared(const struct fake_pinging *pinging)
{
    return pinging->protocol.flags & PROTOCOL_SHARED;
}

/* ---- the protocol ---- */

static int flush(struct protocol_link *pl)
{
    struct pinging_link *self = pl->state;
    ssize_t sent = self->n_out ? protocol_write(pl, &(struct iovec){self->out, self->n_out}, 1) : 0;

    if (sent > 0) {
        self->n_out -= (size_t)sent;
        memmove(self->out, self->out + sent, self->n_out);
    }
    return sent == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int say(struct protocol_link *pl, const unsigned char *bytes, size_t n)
{
    struct pinging_link *self = pl->state;

    if (self->n_out + n > sizeof self->out)
        return LINKPOOL_EAGAIN;
    memcpy(self->out + self->n_out, bytes, n);
    self->n_out += n;
    return flush(pl);
}

static int on_ping(struct protocol_link *pl)
{
    struct fake_pinging *pinging = of(pl);

    if (pinging->probes < FAKE_PROBES) {
        pinging->at[pinging->probes] = testing_now(pinging->t);
        pinging->of[pinging->probes] = pl->link;
    }
    pinging->probes++;
    if (pinging->probes - pinging->pongs > pinging->most_out)
        pinging->most_out = pinging->probes - pinging->pongs;
    if (pinging->ends)
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "ping");
    if (pinging->fails)
        return LINKPOOL_EAGAIN;
    return is_shared(pinging) ? say(pl, (const unsigned char[]){0, 'p'}, FRAME)
                              : say(pl, (const unsigned char *)"p", 1);
}

/* A letter of the protocol's own. */
static int hear(struct protocol_link *pl, unsigned char letter)
{
    if (letter == 'c')
        return protocol_ping_less(pl);
    if (letter != 'q')
        return 0;
    of(pl)->pongs++;
    return protocol_pong(pl);
}

static struct protocol_channel *find(struct protocol_link *pl, unsigned char id)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        if (((struct pinging_channel *)pc->state)->id == id)
            return pc;
    return NULL;
}

static int take(struct protocol_link *pl)
{
    struct pinging_link *self = pl->state;
    struct protocol_channel *pc;

    self->n_in = 0;
    if (!self->in[0])
        return hear(pl, self->in[1]);
    return (pc = find(pl, self->in[0])) ? protocol_deliver(pc, self->in + 1, 1) : 0;
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    struct pinging_link *self = pl->state;
    ssize_t got;

    if (events & LINKPOOL_WRITE && flush(pl))
        return LINKPOOL_ELOST;
    while ((got = protocol_read(pl, self->in + self->n_in, FRAME - self->n_in)) > 0) {
        self->n_in += (size_t)got;
        if (self->n_in == FRAME && take(pl))
            return LINKPOOL_ELOST;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_idle_input(struct protocol_link *pl)
{
    unsigned char letter;
    ssize_t got;

    while ((got = protocol_read(pl, &letter, 1)) > 0)
        if (!strchr("qcn", letter) || hear(pl, letter))
            return 0;
    return got == LINKPOOL_EAGAIN;
}

static int on_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct pinging_link *self = pl->state;

    self->last = self->last == UINT8_MAX ? 1 : (unsigned char)(self->last + 1);
    ((struct pinging_channel *)pc->state)->id = self->last;
    return 0;
}

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    unsigned char frame[FRAME] = {((struct pinging_channel *)pc->state)->id, n ? *(const unsigned char *)bytes : 0};

    return say(pl, frame, FRAME);
}

void fake_pinging_init(struct fake_pinging *pinging, struct testing *t, bool shared)
{
    *pinging = (struct fake_pinging){.t = t};
    pinging->protocol = (struct protocol){.size = sizeof(struct protocol),
        .name = "fake_pinging",
        .link_size = sizeof(struct pinging_link),
        .config = pinging,
        .ping = on_ping};
    if (!shared) {
        pinging->protocol.idle_input = on_idle_input;
        return;
    }
    pinging->protocol.flags = PROTOCOL_SHARED;
    pinging->protocol.max_channels = 3;
    pinging->protocol.channel_size = sizeof(struct pinging_channel);
    pinging->protocol.input = on_input;
    pinging->protocol.open = on_open;
    pinging->protocol.send = on_send;
}

/* ---- the peer ---- */

/* One letter of the protocol's own. */
static void utter(const struct fake_pinging *pinging, struct testing_conn *conn, double delay, char letter)
{
    char frame[FRAME] = {0, letter};

    if (is_shared(pinging))
        testing_conn_send_after(conn, delay, frame, FRAME);
    else
        testing_conn_send_after(conn, delay, &letter, 1);
}

static void answer(struct fake_pinging *pinging, struct testing_conn *conn)
{
    pinging->received++;
    if (pinging->answer == FAKE_MUTE || pinging->mute == conn)
        return;
    if (pinging->answer == FAKE_COMPLAINS)
        utter(pinging, conn, pinging->delay, 'c');
    utter(pinging, conn, pinging->delay, pinging->answer == FAKE_NOISE ? 'n' : 'q');
}

/* What is said is short and goes in one piece: no frame is cut. */
static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct fake_pinging *pinging = data;
    size_t step = is_shared(pinging) ? FRAME : 1;
    const char *in = bytes;

    for (size_t i = 0; i + step <= n; i += step)
        if (in[i + step - 1] == 'p' && (step == 1 || !in[i]))
            answer(pinging, conn);
        else
            testing_conn_send(conn, in + i, step);
}

void fake_pinging_serve(struct fake_pinging *pinging, struct testing_peer *peer)
{
    testing_peer_on(peer,
        &(struct testing_server){.size = sizeof(struct testing_server), .received = on_received, .data = pinging});
}

void fake_pinging_noise(struct fake_pinging *pinging, struct testing_conn *conn)
{
    utter(pinging, conn, 0, 'n');
}
