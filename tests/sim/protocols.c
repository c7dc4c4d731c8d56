/* protocols.c - a session that is cleaned between two holders, and streams on a shared link; both say hello first.
 *
 * What cannot be written at once waits in the link's state, one frame; streams that want to speak meanwhile are refused
 * and told when there is room. */
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

struct talk {
    unsigned char in[FRAME], out[FRAME];
    unsigned n_in, n_out;
    uint32_t last; /* the last stream's number */
    uint32_t mark; /* of this attempt, where a handle of it is kept */
    bool greeted;
};

struct stream {
    uint32_t id;
    bool refused;
};

static struct sim *sim_of(const struct protocol_link *pl)
{
    return (struct sim *)pl->protocol->config;
}

static int flush(struct protocol_link *pl)
{
    struct talk *talk = pl->state;
    struct iovec part = {talk->out + FRAME - talk->n_out, talk->n_out};
    ssize_t sent = talk->n_out ? protocol_write(pl, &part, 1) : 0;

    if (sent > 0)
        talk->n_out -= (unsigned)sent;
    return sent == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int speak(struct protocol_link *pl, struct frame f)
{
    struct talk *talk = pl->state;

    if (talk->n_out)
        return LINKPOOL_EAGAIN;
    memcpy(talk->out, &f, FRAME);
    talk->n_out = FRAME;
    return flush(pl);
}

/* The next whole frame: 1, or 0 when there is none yet, or LINKPOOL_ELOST. */
static int hear(struct protocol_link *pl, struct frame *f)
{
    struct talk *talk = pl->state;
    ssize_t got;

    while ((got = protocol_read(pl, talk->in + talk->n_in, FRAME - talk->n_in)) > 0) {
        talk->n_in += (unsigned)got;
        while (talk->n_in && talk->in[0] == UNASKED)
            memmove(talk->in, talk->in + 1, --talk->n_in);
        if (talk->n_in < FRAME)
            continue;
        talk->n_in = 0;
        *f = frame_read(talk->in);
        if (!frame_is_whole(f))
            return protocol_fail(pl, LINK_PROTOCOL_ERROR, "no frame");
        return 1;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

/* ---- handles that outside code keeps ---- */

static void keep(struct protocol_link *pl)
{
    struct sim *s = sim_of(pl);
    struct kept *kept = &s->kept[below(s, MAX_KEPT)];
    struct talk *talk = pl->state;

    if (!once_in(s, 4))
        return;
    if (!talk->mark)
        talk->mark = ++s->marks;
    *kept = (struct kept){protocol_attempt(pl), talk->mark};
}

void sim__look_at_kept(struct sim *s)
{
    const struct kept *kept = &s->kept[below(s, MAX_KEPT)];
    const struct protocol_link *pl = kept->mark && s->pool ? protocol_attempt_link(kept->attempt) : NULL;

    if (pl)
        HOLDS(s, ((const struct talk *)pl->state)->mark == kept->mark); /* another attempt */
}

/* ---- the session ---- */

static int session_start(struct protocol_link *pl)
{
    keep(pl);
    return speak(pl, frame_of('H', NO_KEY, 0, 0));
}

static int welcomed(struct protocol_link *pl, const struct frame *f)
{
    struct talk *talk = pl->state;

    if (!f->arg)
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "not welcome");
    talk->greeted = true;
    return protocol_ready(pl);
}

/* What a holder did not wait for comes before the answer to the cleaning, and is swallowed. */
static int session_input(struct protocol_link *pl, unsigned events)
{
    struct talk *talk = pl->state;
    struct frame f;
    int got;

    if (events & LINKPOOL_WRITE && flush(pl))
        return LINKPOOL_ELOST;
    while ((got = hear(pl, &f)) == 1) {
        if (f.letter == 'w' && !talk->greeted)
            return welcomed(pl, &f);
        if (f.letter == 'r')
            return protocol_ready(pl);
    }
    return got;
}

static int session_released(struct protocol_link *pl)
{
    struct talk *talk = pl->state;

    talk->n_in = 0;
    keep(pl);
    return speak(pl, frame_of('R', NO_KEY, 0, 0)) ? PROTOCOL_UNCLEAN : PROTOCOL_RESETTING;
}

/* ---- streams ---- */

static uint32_t begun_to; /* of the notice at hand: the predicate is told the channel alone */

static bool is_begun(const struct protocol_channel *pc)
{
    return ((const struct stream *)pc->state)->id <= begun_to;
}

static struct protocol_channel *find(struct protocol_link *pl, uint32_t id)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        if (((struct stream *)pc->state)->id == id)
            return pc;
    return NULL;
}

static unsigned in_use(struct protocol_link *pl)
{
    unsigned n = 0;

    for (struct protocol_channel *pc = NULL; (pc = protocol_next_channel(pl, pc));)
        n++;
    return n;
}

static int stream_start(struct protocol_link *pl)
{
    keep(pl);
    return speak(pl, frame_of('S', NO_KEY, 0, 0));
}

static int set_room(struct protocol_link *pl, uint32_t room)
{
    if (room < in_use(pl))
        sim_of(pl)->rare.n[RARE_ROOM_BELOW_USE]++;
    return protocol_set_room(pl, room);
}

static int going(struct protocol_link *pl, uint32_t to)
{
    for (struct protocol_channel *pc = NULL; (pc = protocol_next_channel(pl, pc));)
        if (((struct stream *)pc->state)->id > to) {
            sim_of(pl)->rare.n[RARE_GOING_DENIED]++;
            break;
        }
    begun_to = to;
    return to % 3 ? protocol_going(pl, is_begun, LINK_CLOSED_BY_PEER, NULL)
                  : protocol_going(pl, is_begun, LINK_SENT_AWAY, "the peer is unwell");
}

static int of_stream(struct protocol_link *pl, const struct frame *f)
{
    struct protocol_channel *pc = find(pl, f->arg);

    if (!pc)
        sim_of(pl)->rare.n[RARE_STREAM_LATE]++;
    if (!pc)
        return 0;
    return f->letter == 'z' ? protocol_end(pc, LINK_RESET, f->key) : protocol_deliver(pc, f, FRAME);
}

static int take(struct protocol_link *pl, const struct frame *f)
{
    struct talk *talk = pl->state;

    switch (f->letter) {
    case 'w':
        if (talk->greeted || !f->arg)
            return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "not welcome");
        return protocol_set_room(pl, f->arg) ? LINKPOOL_ELOST : welcomed(pl, f);
    case 'n':
        return talk->greeted ? set_room(pl, f->arg) : 0;
    case 'g':
        return talk->greeted ? going(pl, f->arg) : protocol_fail(pl, LINK_HANDSHAKE_FAILED, "leaving");
    default:
        return of_stream(pl, f);
    }
}

static int let_write(struct protocol_link *pl)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc))) {
        struct stream *stream = pc->state;
        if (!stream->refused)
            continue;
        stream->refused = false;
        if (protocol_writable(pc))
            return LINKPOOL_ELOST;
        pc = NULL; /* that may have opened and closed any: from the front, each is told once */
    }
    return 0;
}

static int stream_input(struct protocol_link *pl, unsigned events)
{
    struct frame f;
    int got;

    if (events & LINKPOOL_WRITE && (flush(pl) || let_write(pl)))
        return LINKPOOL_ELOST;
    while ((got = hear(pl, &f)) == 1)
        if (take(pl, &f))
            return LINKPOOL_ELOST;
    return got;
}

static int stream_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct talk *talk = pl->state;

    ((struct stream *)pc->state)->id = ++talk->last;
    return 0;
}

static int stream_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    struct stream *stream = pc->state;
    struct frame f = frame_read(bytes);
    int error = n == FRAME ? speak(pl, frame_of('M', f.key, f.serial, stream->id)) : LINKPOOL_EINVAL;

    stream->refused = error == LINKPOOL_EAGAIN;
    return error;
}

static void stream_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    if (cancelled)
        speak(pl, frame_of('K', NO_KEY, 0, ((struct stream *)pc->state)->id));
}

/* What keys have by its pointer lies at one address in each run and under each compiler: else the table of hosts would
 * grow at other times, and an allocation that is to fail would be another. */
struct fixed {
    struct protocol protocols[KINDS];
    struct transport tcp;
};

static struct fixed *fixed(void)
{
    static struct fixed *at;

    if (at)
        return at;
    at = mmap((void *)0x200000000000, sizeof *at, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        abort();
    at->tcp = transport_tcp;
    at->protocols[KIND_RAW] = protocol_raw;
    return at;
}

void sim__defaults(struct pool_host_options *host)
{
    host->transport = &fixed()->tcp;
    host->protocol = &fixed()->protocols[KIND_RAW];
}

const struct protocol *sim__protocol(struct sim *s, int kind)
{
    struct protocol *p = &fixed()->protocols[kind];

    if (p->config == s || kind == KIND_RAW)
        return kind == KIND_RAW ? NULL : p;
    if (kind == KIND_FRAMED) {
        framed__protocol(s, p);
        return p;
    }
    *p = protocol_raw;
    p->name = kind == KIND_ONE_WAY ? "one way" : kind == KIND_SESSION ? "session" : "stream";
    p->config = s;
    if (kind == KIND_ONE_WAY)
        p->flags = PROTOCOL_ONE_WAY;
    if (kind == KIND_PINGED)
        framed__pinged(p);
    if (kind == KIND_SESSION)
        p->link_size = sizeof(struct talk);
    if (kind == KIND_SESSION)
        p->start = session_start, p->input = session_input, p->released = session_released;
    if (kind == KIND_STREAM)
        *p = (struct protocol){.size = sizeof *p,
            .name = p->name,
            .config = s,
            .flags = PROTOCOL_SHARED,
            .max_channels = 3,
            .link_size = sizeof(struct talk),
            .channel_size = sizeof(struct stream),
            .start = stream_start,
            .input = stream_input,
            .open = stream_open,
            .send = stream_send,
            .close = stream_close};
    return p;
}
