/* framed.c - framed links with somebody who looks on at their hooks: how many channels, in which order, when asked; and
 * links for one holder at a time whose protocol can ask. */
#include "linkpool/framed.h"

#include "link/framed_link.h"
#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

/* ---- shared: the library's own hooks, looked at ---- */

static struct sim *sim_of(const struct protocol_link *pl)
{
    return (struct sim *)((char *)pl->protocol->config - offsetof(struct sim, framed));
}

/* A channel is leased: no more of them than the peer has allowed. Those who call are numbered as they get theirs. */
static int on_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct sim *s = sim_of(pl);
    struct seen_link *seen = sim__seen(s, pl->link->id);
    struct caller *caller = calls__of_lease(s, pc->channel->lease);

    HOLDS(s, link__state(pl->link) == LINK_READY);
    HOLDS(s, link__shared(pl->link)->n_used <= link__shared(pl->link)->room);
    seen->n_got++;
    if (caller)
        caller->got = seen->n_got;
    return 0;
}

/* Requests of calls go out in the order in which they got their channels. */
static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    struct sim *s = sim_of(pl);
    struct seen_link *seen = sim__seen(s, pl->link->id);
    const struct caller *caller = calls__of_lease(s, pc->channel->lease);
    uint64_t got = caller ? caller->got : 0;
    int error = protocol_framed.send(pl, pc, bytes, n);

    s->rare.n[RARE_SEND_REFUSED] += caller && error == LINKPOOL_EAGAIN;
    if (error || !caller)
        return error;
    HOLDS(s, got > seen->sent_got);
    seen->sent_got = got;
    return 0;
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    if (events & LINKPOOL_READ)
        signs__heard(sim_of(pl), pl->link);
    return protocol_framed.input(pl, events);
}

static int on_ping(struct protocol_link *pl)
{
    signs__pinged(sim_of(pl), pl->link);
    return protocol_framed.ping(pl);
}

bool framed__is_full(const struct link *link)
{
    return framed__of(&link->protocol)->writer.first;
}

void framed__protocol(struct sim *s, struct protocol *protocol)
{
    *protocol = framed_protocol(&s->framed);
    protocol->open = on_open;
    protocol->send = on_send;
    protocol->input = on_input;
    protocol->ping = on_ping;
}

void framed__options(struct sim *s)
{
    struct framed_options *options = &s->framed;
    unsigned most = once_in(s, 3) ? sim__size(s, 1, 16) : 0;

    for (unsigned i = 0; i < sizeof s->host / sizeof *s->host; i++)
        s->host[i].max_channels = most;
    framed_options_init(options);
    if (once_in(s, 2)) {
        options->max_queue = sim__size(s, 4096, 32768);
        options->max_channel_queue = sim__size(s, 1024, 4096);
    }
    options->max_payload = once_in(s, 2) ? 1024 : 65536;
    options->token = "open";
    options->token_size = once_in(s, 2) ? 4 : 0;
}

/* ---- one at a time: a byte asks, a byte answers ---- */

static int ask(struct protocol_link *pl)
{
    struct iovec part = {(void *)&(char){ALIVE_ASKED}, 1};
    ssize_t sent;

    signs__pinged((struct sim *)pl->protocol->config, pl->link);
    sent = protocol_write(pl, &part, 1);
    return sent < 0 ? (int)sent : 0;
}

/* What else comes while nobody holds it is a holder's that has gone. */
static int hear(struct protocol_link *pl)
{
    char byte;
    ssize_t got;

    while ((got = protocol_read(pl, &byte, 1)) > 0) {
        if (byte != ALIVE)
            return 0;
        if (protocol_pong(pl))
            return 1;
    }
    return got == LINKPOOL_EAGAIN;
}

void framed__pinged(struct protocol *protocol)
{
    protocol->name = "pinged";
    protocol->ping = ask;
    protocol->idle_input = hear;
}
