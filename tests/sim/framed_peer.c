/* framed_peer.c - the far end of framed links: answers in any order, twice or never; says no; changes its limit;
 * leaves; asks; falls silent.
 *
 * What it says and the client must not forgive is counted as a wrong of its peer's: only then may a link end as a
 * protocol error, and after one it must. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fakes/framed_server.h"
#include "tests/sim/peers.h"
#include "tests/sim/wire.h"

enum {
    MOST_PENDING = 256,
    TYPE_OF_PONG = 9,
    TYPE_OF_ERROR = 6
};

struct pending {
    uint32_t id;
    struct frame f;
};

/* A connection that speaks framed. */
struct framed_visit {
    struct visit *visit;
    struct framed_session *session;
    struct framed_calls calls;
    struct pending pending[MOST_PENDING]; /* without an answer yet, in the order in which they came */
    unsigned n;
    uint32_t limit, accepted;
    uint32_t worked_on; /* the highest number of those that get no answer: they were begun */
    bool silent;        /* says nothing */
    bool mute_to_pings; /* a PONG was left out: those that follow would be out of turn */
    bool leaving;
    uint64_t left_turn; /* GOAWAY was said then */
    unsigned pings;     /* asked of the client, */
    unsigned heard;     /* and answered */
    double wrong_at;    /* what it said last that is wrong is there by then; 0: nothing */
    double pongs_late;  /* seconds */
};

static struct sim *sim_of(const struct framed_visit *fv)
{
    return fv->visit->peer->sim;
}

static struct framed_visit *of(const struct framed_session *session)
{
    return framed_session_data(session);
}

/* ---- what is said ---- */

static void wrong(struct framed_visit *fv)
{
    fv->visit->peer->wrongs++;
    fv->wrong_at = peers__said_by(fv->visit);
}

/* A PONG may be late, or left out. */
static bool keeps_back(struct framed_visit *fv, uint8_t type)
{
    if (fv->silent || (type == TYPE_OF_PONG && fv->mute_to_pings)) {
        fv->mute_to_pings = fv->mute_to_pings || type == TYPE_OF_PONG;
        return true;
    }
    return false;
}

static void on_say(struct framed_session *session, const void *bytes, size_t n)
{
    struct framed_visit *fv = of(session);
    uint8_t type = ((const uint8_t *)bytes)[4];
    double late = fv->visit->peer->late;

    if (keeps_back(fv, type))
        return;
    if (type == TYPE_OF_ERROR && fv->left_turn == sim_of(fv)->turns)
        sim_of(fv)->rare.n[RARE_GOAWAY_BETWEEN]++;
    if (type == TYPE_OF_PONG && fv->pongs_late > late)
        late = fv->pongs_late;
    peers__say(fv->visit, bytes, n, late);
}

/* ---- requests ---- */

static struct pending take_out(struct framed_visit *fv, unsigned i)
{
    struct pending taken = fv->pending[i];

    fv->n--;
    memmove(&fv->pending[i], &fv->pending[i + 1], (fv->n - i) * sizeof taken);
    return taken;
}

static void undone(struct framed_visit *fv, const struct pending *pending)
{
    if (pending->f.letter == 'C')
        ledger__undone(sim_of(fv), pending->f.serial);
}

static void say_error(struct framed_visit *fv, const struct pending *pending, uint32_t code)
{
    char text[48];

    snprintf(text, sizeof text, "sim %u %lu", pending->f.key, (unsigned long)pending->f.serial);
    framed_session_error(fv->session, pending->id, code, text);
}

/* To a request of a call with what it has; to a holder's own with the same. */
static void answer(struct framed_visit *fv, const struct pending *pending)
{
    static unsigned char bytes[1024];
    struct sim *s = sim_of(fv);
    bool is_call = pending->f.letter == 'C', cancelled;
    size_t n = is_call ? FRAME + below(s, once_in(s, 4) ? 900 : 32) : FRAME;
    struct frame f = frame_of(is_call ? 'c' : 'm', (unsigned)pending->f.key, pending->f.serial, (uint32_t)n);

    if (is_call && ledger__is_over(s, pending->f.serial, &cancelled))
        s->rare.n[RARE_CALL_SWALLOWED] += cancelled;
    memcpy(bytes, &f, FRAME);
    framed_session_answer(fv->session, pending->id, bytes, n);
}

static void begun(struct framed_visit *fv, const struct pending *pending)
{
    if (pending->id > fv->worked_on)
        fv->worked_on = pending->id;
}

/* With each of what may be said to a request. */
static void settle(struct framed_visit *fv, unsigned i)
{
    struct sim *s = sim_of(fv);
    unsigned what = fv->visit->peer->denies ? 0 : below(s, 24);
    struct pending pending = take_out(fv, i);

    if (fv->silent) { /* nothing of what it says now is heard: it has begun all the same */
        begun(fv, &pending);
        return;
    }
    if (!fv->visit->peer->odd || what > 5) {
        answer(fv, &pending);
    } else if (what < 2) {
        undone(fv, &pending);
        framed_session_error(fv->session, pending.id, 1, "not processed");
    } else if (what < 4) {
        say_error(fv, &pending, what == 2 ? 256 : 5);
    } else if (what == 5 && once_in(s, 12)) {
        s->rare.n[RARE_ANSWER_TWICE]++;
        answer(fv, &pending);
        answer(fv, &pending);
        fv->visit->peer->wrongs++; /* or it is taken for that of one who has gone */
    } else if (what == 5 && once_in(s, 12)) {
        framed_session_answer(fv->session, framed_session_last_id(fv->session) + 100000, NULL, 0);
        wrong(fv);
        begun(fv, &pending);
    } else {
        begun(fv, &pending);
    }
}

static void settle_some(struct framed_visit *fv, unsigned most)
{
    for (unsigned i = 0; i < most && fv->n && !fv->silent; i++)
        settle(fv, below(sim_of(fv), fv->n));
}

static void leave(struct framed_visit *fv);

/* Whoever has heard something wrong says no more. What he said before may lie in a clogged connection, and what was
 * wrong may still be dripping. */
static double talked_to_until(const struct framed_visit *fv)
{
    const struct peer *peer = fv->visit->peer;

    if (peer->drips)
        return INFINITY;
    return (peer->thawed_at > fv->wrong_at ? peer->thawed_at : fv->wrong_at) + 1;
}

static void on_request(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    struct framed_visit *fv = of(session);
    struct sim *s = sim_of(fv);
    struct pending *pending = &fv->pending[fv->n];

    HOLDS(s, n >= FRAME);
    HOLDS(s, !fv->wrong_at || testing_now(s->t) <= talked_to_until(fv) || s->jumped_to > fv->wrong_at);
    *pending = (struct pending){id, frame_read(payload)};
    HOLDS(s, frame_is_whole(&pending->f));
    HOLDS(s, pending->f.letter == 'C' ? pending->f.arg == n : pending->f.letter == 'M');
    if (pending->f.key != NO_KEY)
        peers__look_at_owner(fv->visit, &pending->f);
    else
        pending->f.key = (uint16_t)(fv->visit->key < 0 ? NO_KEY : fv->visit->key);
    if (pending->f.letter == 'C')
        ledger__received(s, pending->f.serial);
    fv->n++;
    if (fv->n == MOST_PENDING || !fv->visit->peer->odd)
        settle(fv, fv->n - 1);
    else if (once_in(s, 2))
        settle_some(fv, 1 + below(s, 2));
    if (fv->visit->peer->odd && once_in(s, 100))
        leave(fv);
}

/* Nobody wants the answer: it may come all the same. */
static void on_cancel(struct framed_session *session, uint32_t id)
{
    struct framed_visit *fv = of(session);
    unsigned what = below(sim_of(fv), 4);

    for (unsigned i = 0; i < fv->n && what < 2; i++)
        if (fv->pending[i].id == id) {
            struct pending pending = take_out(fv, i);
            if (what == 0)
                say_error(fv, &pending, 2);
            return;
        }
}

/* In the order in which they were asked. */
static void on_pong(struct framed_session *session, const void *eight)
{
    struct framed_visit *fv = of(session);
    unsigned number;

    memcpy(&number, eight, sizeof number);
    HOLDS(sim_of(fv), number == ++fv->heard && number <= fv->pings);
}

static bool on_hello(struct framed_session *session, const void *token, size_t n)
{
    const struct framed_visit *fv = of(session);
    struct sim *s = sim_of(fv);

    HOLDS(s, n == s->framed.token_size && (!n || !memcmp(token, "open", n)));
    s->rare.n[RARE_HANDSHAKE_REFUSED] += fv->visit->peer->refuses;
    return !fv->visit->peer->refuses;
}

/* ---- unasked ---- */

static void say_limit(struct framed_visit *fv, uint32_t limit)
{
    sim_of(fv)->rare.n[RARE_LIMIT_BELOW_USE] += limit < fv->n;
    fv->limit = limit;
    framed_session_limit(fv->session, limit);
}

static void say_going(struct framed_visit *fv, uint32_t last)
{
    for (unsigned i = 0; i < fv->n;)
        if (fv->pending[i].id > last) {
            struct pending pending = take_out(fv, i);
            undone(fv, &pending);
        } else {
            i++;
        }
    sim_of(fv)->rare.n[RARE_GOAWAY_TWICE] += fv->leaving;
    fv->leaving = true;
    fv->accepted = last;
    fv->left_turn = sim_of(fv)->turns;
    framed_session_goaway(fv->session, last, 0, "leaving");
}

/* Once or twice: the second lowers what the first had said. */
static void leave(struct framed_visit *fv)
{
    struct sim *s = sim_of(fv);
    uint32_t last = framed_session_last_id(fv->session), back = below(s, 4);
    uint32_t to = last - (back < last ? back : 0);

    if (fv->silent)
        return;
    if (!fv->leaving && once_in(s, 2))
        say_going(fv, UINT32_MAX);
    else if (!fv->leaving || fv->accepted == UINT32_MAX)
        say_going(fv, to > fv->worked_on ? to : fv->worked_on);
}

static void ask(struct framed_visit *fv)
{
    unsigned char eight[8] = {0};

    if (fv->silent || fv->pings - fv->heard > 8)
        return;
    fv->pings++;
    memcpy(eight, &fv->pings, sizeof fv->pings);
    framed_session_ping(fv->session, eight);
}

void framed_visit__speak(struct framed_visit *fv)
{
    struct sim *s = sim_of(fv);
    unsigned what = below(s, 16), times = 1 + below(s, 3);

    if (!framed_session_is_open(fv->session))
        return;
    switch (what) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (!fv->silent)
            say_limit(fv, below(s, s->p.rooms + 1));
        break;
    case 4:
        leave(fv);
        break;
    case 5:
    case 6:
        while (times--)
            ask(fv);
        break;
    case 7:
        fv->silent = !fv->silent;
        break;
    case 8:
        fv->mute_to_pings = true;
        break;
    case 9:
        fv->pongs_late = once_in(s, 2) ? s->heart[0].timeout : sim__spread(s, 0.001, 4);
        break;
    case 10:
        if (fv->leaving) {
            testing_conn_close(fv->visit->conn); /* the late death of one that had said so */
            return;
        }
        break;
    default:
        settle_some(fv, fv->n);
        break;
    }
}

/* Time goes by. */
void framed_visit__go_on(struct framed_visit *fv)
{
    struct sim *s = sim_of(fv);

    if (framed_session_is_open(fv->session))
        settle_some(fv, 1 + below(s, 4));
    if (s->p.hostility && once_in(s, 8))
        framed_visit__speak(fv);
}

/* The faults are over; a PONG left out was one that stays. */
void framed_visit__calm(struct framed_visit *fv)
{
    struct sim *s = sim_of(fv);

    fv->calls.channels = s->p.rooms;
    if (!framed_session_is_open(fv->session))
        return;
    if (fv->mute_to_pings)
        fv->visit->peer->wrongs++;
    fv->silent = fv->mute_to_pings = false;
    fv->pongs_late = 0;
    settle_some(fv, fv->n);
    say_limit(fv, s->p.rooms);
}

/* ---- coming and going ---- */

struct framed_visit *framed_visit__new(struct visit *visit)
{
    struct framed_visit *fv = calloc(1, sizeof *fv);
    struct sim *s = visit->peer->sim;

    if (!fv)
        abort();
    fv->visit = visit;
    fv->accepted = UINT32_MAX;
    fv->limit = s->calm ? s->p.rooms : once_in(s, 12) ? 0 : 1 + below(s, s->p.rooms);
    fv->calls = (struct framed_calls){.say = on_say,
        .hello = on_hello,
        .request = on_request,
        .cancel = on_cancel,
        .pong = on_pong,
        .max_payload = once_in(s, 4) ? 1024 : 65536,
        .channels = fv->limit,
        .silent = visit->peer->mute};
    if (!(fv->session = framed_session_new(&fv->calls, fv)))
        abort();
    return fv;
}

void framed_visit__free(struct framed_visit *fv)
{
    if (!fv)
        return;
    framed_session_free(fv->session);
    free(fv);
}

/* What the client says always makes sense. One that was sent away is hung up on. */
void framed_visit__take(struct framed_visit *fv, const void *bytes, size_t n)
{
    struct sim *s = sim_of(fv);

    if (!framed_session_take(fv->session, bytes, n))
        return;
    if (*framed_session_fault(fv->session) && strcmp(framed_session_fault(fv->session), "an unwelcome client"))
        fprintf(stderr, "sim: a peer says: %s\n", framed_session_fault(fv->session));
    HOLDS(s, !strcmp(framed_session_fault(fv->session), "an unwelcome client"));
    testing_conn_close(fv->visit->conn);
}
