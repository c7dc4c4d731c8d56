/* framed_input.c - what comes on a framed link: frames, one at a time, each to the one it concerns.
 *
 * Each function returns 0, or an error after which the link is gone and nothing may be touched. */
#include <stdio.h>

#include "link/framed_link.h"

enum {
    ROOM = 16384,      /* bytes read at a time, on the stack: a quiet link keeps no buffer */
    READS_A_TURN = 16, /* then the others of this loop have their turn */
    WHY = 96,
    AFTER_ACK = FRAMED_BIT(FRAMED_LIMIT) | FRAMED_BIT(FRAMED_ANSWER) | FRAMED_BIT(FRAMED_ERROR) |
                FRAMED_BIT(FRAMED_PING) | FRAMED_BIT(FRAMED_PONG) | FRAMED_BIT(FRAMED_GOAWAY)
};

static int wrong(struct protocol_link *pl, const char *why)
{
    return protocol_fail(pl, LINK_PROTOCOL_ERROR, why);
}

/* ---- the link ---- */

static int on_hello_ack(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    uint32_t version = framed__get32(frame->payload);
    char why[WHY];

    if (self->writer.first)
        return wrong(pl, "HELLO_ACK before all of the HELLO was read");
    if (version != FRAMED_VERSION) {
        snprintf(why, sizeof why, "HELLO_ACK with version %u; ours is %u", version, (unsigned)FRAMED_VERSION);
        return wrong(pl, why);
    }
    self->introduced = true;
    self->peer_payload = framed__get32(frame->payload + 4);
    if (self->peer_payload > UINT32_MAX - FRAMED_HEAD)
        self->peer_payload = UINT32_MAX - FRAMED_HEAD; /* a frame's own size is counted in 32 bits */
    self->reader.allowed = AFTER_ACK;
    protocol_set_room(pl, framed__get32(frame->payload + 8)); /* before it is READY nobody is served by that */
    return protocol_ready(pl);
}

static int on_ping(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    int error;

    if (self->writer.n_pongs >= FRAMED_MAX_PONGS && (error = framed__flush(pl)))
        return error;
    if (self->writer.n_pongs >= FRAMED_MAX_PONGS)
        return wrong(pl, "PINGs whose PONGs are not read");
    error = framed__say(pl, FRAMED_PONG, 0, frame->payload, frame->head.n);
    return error == LINKPOOL_ENOMEM ? protocol_fail(pl, LINK_NO_MEMORY, "no memory for a PONG") : error;
}

static int on_pong(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);

    if (self->pongs == self->pings || framed__get64(frame->payload) != self->pongs + 1)
        return wrong(pl, "a PONG never asked for");
    self->pongs++;
    return protocol_pong(pl);
}

/* ---- leaving ---- */

/* Its code and words, behind ours. */
static void say_cause(char *why, size_t n, const char *what, const struct framed_frame *frame)
{
    char text[256];

    link__quote(text, sizeof text, (const char *)frame->payload + 8, frame->head.n - 8);
    snprintf(why, n, "%s: %u%s%s", what, framed__get32(frame->payload + 4), *text ? ": " : "", text);
}

static int refused(struct protocol_link *pl, const struct framed_frame *frame)
{
    char why[320];

    if (framed__get32(frame->payload + 4) == FRAMED_NO_ERROR)
        return protocol_fail(pl, LINK_CLOSED_BY_PEER, "the peer is leaving");
    say_cause(why, sizeof why, "the peer would not have us", frame);
    return protocol_fail(pl, LINK_HANDSHAKE_FAILED, why);
}

static bool was_processed(const struct protocol_channel *pc)
{
    return !((const struct framed_channel *)pc->state)->denied;
}

static void mark_denied(struct protocol_link *pl)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc))) {
        struct framed_channel *channel = pc->state;
        channel->denied =
            channel->stage == FRAMED_ASKED ? channel->id > framed__of(pl)->accepted : channel->stage != FRAMED_ANSWERED;
    }
}

static int lead_away(struct protocol_link *pl, const struct framed_frame *frame)
{
    char why[320];

    if (framed__get32(frame->payload + 4) == FRAMED_NO_ERROR)
        return protocol_going(pl, was_processed, LINK_CLOSED_BY_PEER, NULL);
    say_cause(why, sizeof why, "the peer sent us away", frame);
    return protocol_going(pl, was_processed, LINK_SENT_AWAY, why);
}

static int on_goaway(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    uint32_t last = framed__get32(frame->payload);
    char why[WHY];

    if (framed__get32(frame->payload + 4) == FRAMED_TOO_MANY_PINGS)
        protocol_ping_less(pl);
    if (!self->introduced)
        return refused(pl, frame);
    if (self->leaving && last > self->accepted) {
        snprintf(why, sizeof why, "GOAWAY that raises the last id from %u to %u", self->accepted, last);
        return wrong(pl, why);
    }
    self->leaving = true;
    self->accepted = last;
    mark_denied(pl);
    return lead_away(pl, frame);
}

/* ---- requests ---- */

/* An answer whose asker is gone, or to nothing that was asked. Late as it is, it is one. */
static int on_stray(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    const char *name = frame->head.type == FRAMED_ANSWER ? "ANSWER" : "ERROR";
    char why[WHY];

    if (frame->head.id > self->writer.last_id) {
        snprintf(why, sizeof why, "%s to the request %u; the last one sent is %u", name, frame->head.id,
            self->writer.last_id);
        return wrong(pl, why);
    }
    if (self->unheard) {
        self->unheard--;
        link__note_answer(pl->link);
        return 0;
    }
    snprintf(why, sizeof why, "%s to the request %u, which was answered before", name, frame->head.id);
    return wrong(pl, why);
}

/* Whose answer it is; NULL: nobody waits for it. */
static struct framed_channel *asker(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_channel *channel = framed__ids_take(&framed__of(pl)->ids, frame->head.id);

    if (!channel)
        return NULL;
    channel->stage = FRAMED_ANSWERED;
    channel->served = true;
    return channel;
}

static int on_answer(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_channel *channel = asker(pl, frame);

    if (!channel)
        return on_stray(pl, frame);
    if (link__takes_parts(framed__pc(channel)->channel))
        return protocol_deliver_part(framed__pc(channel), frame->payload, frame->head.n, true);
    return protocol_deliver(framed__pc(channel), frame->payload, frame->head.n);
}

/* Not all of it is there. It is gathered for one who wants it whole; for nobody it is not. */
static int on_answer_begun(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    struct framed_channel *channel = framed__ids_find(&self->ids, frame->head.id);
    int error;

    if (channel && !link__takes_parts(framed__pc(channel)->channel))
        return 0;
    if ((channel = asker(pl, frame)))
        channel->stage = FRAMED_ANSWERING;
    else if ((error = on_stray(pl, frame)))
        return error;
    self->answering = channel;
    framed__in_pieces(&self->reader);
    return 0;
}

static int on_piece(struct protocol_link *pl, const struct framed_frame *frame)
{
    struct framed_link *self = framed__of(pl);
    struct framed_channel *channel = self->answering;

    if (!channel)
        return 0;
    if (frame->is_last) {
        self->answering = NULL;
        channel->stage = FRAMED_ANSWERED;
    }
    return protocol_deliver_part(framed__pc(channel), frame->payload, frame->n_piece, frame->is_last);
}

static int on_error(struct protocol_link *pl, const struct framed_frame *frame)
{
    uint32_t code = framed__get32(frame->payload);
    struct framed_channel *channel;

    if (code == FRAMED_NO_ERROR)
        return wrong(pl, "ERROR with the code 0");
    if (!(channel = asker(pl, frame)))
        return on_stray(pl, frame);
    if (code == FRAMED_NOT_PROCESSED)
        return protocol_end(framed__pc(channel), LINK_CLOSED_BY_PEER, true);
    return protocol_deliver_error(framed__pc(channel), code, frame->payload + 4, frame->head.n - 4);
}

/* The link is replaced before its numbers run out; those out may go on with what is left of them. */
static int watch_numbers(struct protocol_link *pl)
{
    struct framed_link *self = framed__of(pl);

    if (self->spent || self->leaving || self->writer.last_id < FRAMED_MAX_ID - FRAMED_LAST_IDS)
        return 0;
    self->spent = true;
    return protocol_going(pl, NULL, LINK_USED_UP, NULL);
}

/* ---- frames ---- */

static int on_frame(struct protocol_link *pl, const struct framed_frame *frame)
{
    switch (frame->head.type) {
    case FRAMED_HELLO_ACK:
        return on_hello_ack(pl, frame);
    case FRAMED_LIMIT:
        return protocol_set_room(pl, framed__get32(frame->payload));
    case FRAMED_ANSWER:
        return on_answer(pl, frame);
    case FRAMED_ERROR:
        return on_error(pl, frame);
    case FRAMED_PING:
        return on_ping(pl, frame);
    case FRAMED_PONG:
        return on_pong(pl, frame);
    default: /* the reader lets nothing else through */
        return on_goaway(pl, frame);
    }
}

static int on_found(struct protocol_link *pl, int found, const struct framed_frame *frame)
{
    if (found == FRAMED_FRAME)
        return on_frame(pl, frame);
    return found == FRAMED_BEGUN ? on_answer_begun(pl, frame) : on_piece(pl, frame);
}

static int take(struct protocol_link *pl, const unsigned char *bytes, size_t n)
{
    const struct linkpool_env *env = protocol_env(pl);
    struct framed_reader *reader = &framed__of(pl)->reader;
    struct framed_frame frame;
    char why[WHY];
    int found;

    for (;;) {
        int error;
        while (framed__next_whole(reader, &bytes, &n, &frame))
            if ((error = on_frame(pl, &frame)))
                return error;
        if ((found = framed__next(reader, &bytes, &n, &frame, why, sizeof why)) <= FRAMED_MORE)
            break;
        error = on_found(pl, found, &frame);
        framed__frame_done(env, &frame);
        if (error)
            return error;
    }
    if (found == LINKPOOL_ENOMEM)
        return protocol_fail(pl, LINK_NO_MEMORY, "no memory for a frame");
    return found ? wrong(pl, why) : 0;
}

/* It ended within a frame. Of an answer, which may take long, and be somebody's or nobody's, that is a sign of life. */
static void note_progress(struct protocol_link *pl)
{
    const struct framed_reader *reader = &framed__of(pl)->reader;

    if (reader->n_head == FRAMED_HEAD && framed__get_head(reader->head).type == FRAMED_ANSWER)
        link__note_answer(pl->link);
}

/* One read and what it brings. @return bytes, LINKPOOL_EAGAIN, or an error. */
static ssize_t read_once(struct protocol_link *pl, size_t *asked)
{
    struct framed_reader *reader = &framed__of(pl)->reader;
    unsigned char bytes[ROOM], *at = bytes;
    size_t room = framed__room(reader, &at);
    ssize_t got;
    int error;

    *asked = room ? room : sizeof bytes;
    if ((got = protocol_read(pl, at, *asked)) < 0)
        return got;
    if (room)
        framed__filled(reader, (size_t)got);
    if ((error = take(pl, bytes, room ? 0 : (size_t)got)))
        return error;
    note_progress(pl);
    return got;
}

int framed__input(struct protocol_link *pl, bool short_is_all)
{
    for (unsigned i = 0; i < READS_A_TURN || !short_is_all; i++) {
        size_t asked;
        ssize_t got = read_once(pl, &asked);
        if (got == LINKPOOL_EAGAIN)
            break;
        if (got < 0)
            return (int)got;
        if (short_is_all && (size_t)got < asked)
            break;
    }
    return watch_numbers(pl);
}
