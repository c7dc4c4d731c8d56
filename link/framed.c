/* framed.c - the framed protocol's hooks: the handshake, requests to channels, ping, leaving.
 *
 * A link's state is a reader, a writer and a table of requests under way. The hooks send, close and leave run
 * inside the user's calls; nobody is told anything from them. */
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"

/* ---- the attempt ---- */

static int say_hello(struct protocol_link *pl, const struct framed_options *options)
{
    unsigned char hello[8 + FRAMED_MAX_TOKEN];
    int error;

    framed__put32(hello, FRAMED_VERSION);
    framed__put32(hello + 4, options->max_payload);
    if (options->token_size)
        memcpy(hello + 8, options->token, options->token_size);
    error = framed__say(pl, FRAMED_HELLO, 0, hello, 8 + options->token_size);
    return error == LINKPOOL_ENOMEM ? protocol_fail(pl, LINK_NO_MEMORY, "no memory for the HELLO") : error;
}

static int on_start(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);
    struct framed_options options;
    char why[160];

    if (framed_options_check(pl->protocol->config, why, sizeof why))
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, why);
    framed__options_take(&options, pl->protocol->config);
    self->reader.env = self->writer.env = protocol_env(pl);
    framed__ids_init(&self->ids);
    self->writer.blocks = &link__core(pl->link)->blocks;
    self->reader.max_payload = options.max_payload;
    self->reader.asks = true;
    self->reader.allowed = FRAMED_BIT(FRAMED_HELLO_ACK) | FRAMED_BIT(FRAMED_GOAWAY);
    self->max_queue = options.max_queue;
    self->max_channel_queue = options.max_channel_queue;
    return say_hello(pl, &options);
}

static void on_end(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);

    framed__reader_free(&self->reader);
    framed__writer_free(&self->writer);
    framed__ids_free(&self->ids, protocol_env(pl));
}

/* ---- what comes ---- */

static int on_input(struct protocol_link *pl, unsigned events)
{
    bool holds_back = pl->link->owner->transport->pending; /* such a one rings with LINKPOOL_WRITE, and not again */
    int error = 0;

    if (events & LINKPOOL_READ || (events && holds_back))
        error = framed__input(pl, !holds_back);
    if (error || (events == LINKPOOL_READ && !framed__of(pl)->refused))
        return error; /* what was sent meanwhile goes with the rest of this turn */
    return framed__settle(pl);
}

/* ---- channels ---- */

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    return framed__request(pl, pc->state, bytes, n);
}

static void on_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    struct framed_link *self = framed__of(pl);
    struct framed_channel *channel = pc->state;

    if (channel->stage == FRAMED_ANSWERED && self->told != channel)
        return; /* most: nothing is left of it */
    framed__stop_waiting(self, channel);
    /* One given back by its holder goes; one that is told that it does not must not. */
    if (channel->stage == FRAMED_QUEUED && !cancelled && !channel->denied && !self->stuck && framed__flush(pl))
        return; /* it is lost */
    if (channel->stage == FRAMED_QUEUED)
        framed__take_back(&self->writer, channel->out);
    if (self->answering == channel)
        self->answering = NULL; /* the rest is swallowed as it comes */
    if (channel->stage != FRAMED_ASKED)
        return;
    framed__ids_take(&self->ids, channel->id);
    self->unheard++;
    if (cancelled)
        framed__say(pl, FRAMED_CANCEL, channel->id, NULL, 0); /* a courtesy: without memory it is left out */
}

static bool is_unsent(const struct protocol_channel *pc)
{
    const struct framed_channel *channel = pc->state;

    return channel->stage < FRAMED_ASKED && !channel->served;
}

/* Its header has come; the reader has what there is of the rest, or has handed it out in pieces. */
static bool is_being_answered(const struct protocol_channel *pc)
{
    const struct framed_reader *reader = &framed__of(&pc->channel->link->protocol)->reader;
    const struct framed_channel *channel = pc->state;

    if (channel->stage != FRAMED_ASKED)
        return channel->stage == FRAMED_ANSWERING;
    return reader->n_head == FRAMED_HEAD && framed__get_head(reader->head).id == channel->id;
}

/* ---- signs of life, and leaving ---- */

static int on_ping(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);
    unsigned char number[8];
    int error;

    if (self->writer.first && self->pings != self->pongs)
        return LINKPOOL_EAGAIN; /* one is under way, and the line is full: another would not get there sooner */
    framed__put64(number, self->pings + 1);
    if (!(error = framed__say(pl, FRAMED_PING, 0, number, sizeof number)))
        self->pings++;
    return error;
}

/* Requests of which nothing has gone are over by now, and must not go after all. */
static void on_leave(struct protocol_link *pl)
{
    static const unsigned char goaway[8]; /* nothing of the peer's was accepted, and nothing is wrong */
    struct framed_link *self = framed__of(pl);

    self->leaves = true;
    framed__drop_unbegun(&self->writer);
    if (!self->writer.first)
        framed__say(pl, FRAMED_GOAWAY, 0, goaway, sizeof goaway);
}

/* ---- the protocol ---- */

#define FRAMED_PROTOCOL                                                                                                \
    .size = sizeof(struct protocol), .name = "framed", .flags = PROTOCOL_SHARED, .max_channels = 1,                    \
    .link_size = sizeof(struct framed_link), .channel_size = sizeof(struct framed_channel), .start = on_start,         \
    .input = on_input, .send = on_send, .close = on_close, .unsent = is_unsent, .answering = is_being_answered,        \
    .ping = on_ping, .leave = on_leave, .end = on_end

const struct protocol protocol_framed = {FRAMED_PROTOCOL};

struct protocol framed_protocol(const struct framed_options *options)
{
    return (struct protocol){FRAMED_PROTOCOL, .config = options};
}
