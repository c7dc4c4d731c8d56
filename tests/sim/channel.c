/* channel.c - what a holder does with its channel, and whether what it reads is its own.
 *
 * A holder tells the truth when it gives back for reuse: its exchange is complete, or the library is bound to see
 * that it is not (it sent last; something is unread). */
#include <utlist.h>

#include "linkpool/framed.h"

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

static int kind_of(const struct user *user)
{
    return user->sim->keys[user->key].kind;
}

static const struct peer *peer_of(const struct user *user)
{
    return &user->sim->peers[user->sim->keys[user->key].address];
}

static void on_readable(struct channel *channel);
static void on_writable(struct channel *channel);
static void on_message(struct channel *channel, const void *bytes, size_t n);
static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n);

static const struct channel_events events = {
    .readable = on_readable, .writable = on_writable, .message = on_message, .error = on_error};

bool sim__may_reuse(struct sim *s, const struct user *user)
{
    int kind = kind_of(user);
    bool is_raw = kind == KIND_RAW || kind == KIND_PINGED;

    (void)s;
    if (kind_is_shared(kind) || (!user->n_out && !user->due))
        return true;
    if (is_raw && user->due == 1 && user->extra && !user->n_out && !user->midway && !peer_of(user)->dripped)
        return true; /* its extra is there, unread */
    if (is_raw)
        return !user->heard;
    return kind == KIND_SESSION && !user->n_out && !user->midway;
}

bool sim__is_done(const struct user *user)
{
    return !user->n_out && !user->due && (user->heard || user->said);
}

/* ---- reading ---- */

static void take_frame(struct sim *s, struct user *user)
{
    struct frame f = frame_read(user->in);

    user->n_in = 0;
    HOLDS(s, frame_is_whole(&f));
    HOLDS(s, f.key == user->key);       /* bytes of another key */
    HOLDS(s, f.serial == user->serial); /* bytes of another holder */
    HOLDS(s, user->due);                /* more than was asked for */
    user->due--;
}

static void take_bytes(struct sim *s, struct user *user, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!user->n_in && bytes[i] == UNASKED)
            continue;
        HOLDS(s, user->n_in || bytes[i] != ALIVE); /* it was meant for the protocol */
        user->in[user->n_in++] = bytes[i];
        if (user->n_in == FRAME)
            take_frame(s, user);
    }
    user->midway = user->n_in;
}

/* Once. @return what channel_read() said. */
static ssize_t read_once(struct sim *s, struct user *user)
{
    unsigned char bytes[96];
    size_t most = once_in(s, 3) ? FRAME - user->n_in : 1 + below(s, sizeof bytes);
    ssize_t got = channel_read(user->lease.channel, bytes, most);

    HOLDS(s, got <= (ssize_t)most);
    HOLDS(s, got >= 0 || got == LINKPOOL_EAGAIN || got == LINKPOOL_ELOST);
    sim__note(s, "read", user->serial, (uint64_t)got);
    if (got > 0) {
        user->heard = true;
        take_bytes(s, user, bytes, (size_t)got);
    } else if (got == LINKPOOL_ELOST) {
        HOLDS(s, user->lease.reason != LINK_NO_REASON);
    }
    return got;
}

/* ---- writing ---- */

static bool flush(struct user *user)
{
    struct iovec part = {user->out + FRAME - user->n_out, user->n_out};
    ssize_t sent = user->n_out ? channel_writev(user->lease.channel, &part, 1) : 0;

    if (sent > 0) {
        user->n_out -= (unsigned)sent;
        user->heard = false;
    }
    return sent >= 0 || sent == LINKPOOL_EAGAIN;
}

static void say(struct sim *s, struct user *user, char letter)
{
    struct frame f = frame_of(letter, (unsigned)user->key, user->serial, 0);

    memcpy(user->out, &f, FRAME);
    user->n_out = FRAME;
    user->said = true;
    user->extra = letter == 'X';
    user->due = letter == 'O' ? 0 : letter == 'X' ? 2 : 1;
    sim__note(s, "say", user->serial, (uint64_t)letter);
}

static void send_message(struct sim *s, struct user *user)
{
    struct frame f = frame_of('M', (unsigned)user->key, user->serial, 0);
    int error = channel_send(user->lease.channel, &f, FRAME);

    if (kind_of(user) == KIND_FRAMED)
        HOLDS(s, error != LINKPOOL_EINVAL && (error != LINKPOOL_ENOMEM || s->p.memory_fails));
    else
        HOLDS(s, !error || error == LINKPOOL_EAGAIN || error == LINKPOOL_ELOST);
    if (!error)
        user->due++, user->said = true;
    sim__note(s, "send", user->serial, (uint64_t)error);
}

/* ---- the loop calls ---- */

static struct user *user_of(struct channel *channel)
{
    struct user *user = channel_lease(channel)->data;

    HOLDS(user->sim, user->state == USER_HOLDING && user->lease.channel == channel);
    HOLDS(user->sim, user->sim->pool);
    return user;
}

static void on_readable(struct channel *channel)
{
    struct user *user = user_of(channel);
    struct sim *s = user->sim;
    ssize_t got;

    s->in_bytes++;
    s->depth++;
    got = read_once(s, user);
    if (got == 0 || got == LINKPOOL_ELOST)
        sim__release(s, user, once_in(s, 2) ? POOL_REUSE : POOL_DISCARD);
    else if (!user->due && once_in(s, 2))
        sim__release(s, user, sim__may_reuse(s, user) ? POOL_REUSE : POOL_DISCARD);
    s->depth--;
    sim__react(s);
    s->in_bytes--;
}

static void on_writable(struct channel *channel)
{
    struct user *user = user_of(channel);
    struct sim *s = user->sim;

    s->in_bytes++;
    if (!kind_is_shared(kind_of(user)) && !flush(user))
        sim__release(s, user, POOL_DISCARD);
    else if (!user->n_out)
        channel_want(channel, LINKPOOL_READ);
    sim__react(s);
    s->in_bytes--;
}

/* An answer of its own, or, without bytes, the peer's error. */
static void hear(struct user *user, const void *answer)
{
    struct sim *s = user->sim;

    s->in_bytes++;
    user->heard = true;
    if (answer) {
        memcpy(user->in, answer, FRAME);
        take_frame(s, user);
    } else {
        HOLDS(s, user->due);
        user->due--;
    }
    if (!user->due && once_in(s, 2))
        sim__release(s, user, POOL_REUSE);
    sim__react(s);
    s->in_bytes--;
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct user *user = user_of(channel);

    HOLDS(user->sim, n == FRAME);
    hear(user, bytes);
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    struct user *user = user_of(channel);

    HOLDS(user->sim, code && words && n);
    hear(user, NULL);
}

/* ---- a holder's next step ---- */

static void do_oddly(struct sim *s, struct user *user)
{
    struct channel *channel = user->lease.channel;
    unsigned what = below(s, 5);

    switch (what) {
    case 0:
        channel_shutdown(channel);
        user->due = user->due ? user->due : 0;
        user->shut = true;
        break;
    case 1:
        channel_keep_private(channel);
        break;
    case 2:
        channel_fd(channel);
        break;
    default:
        channel_watch(channel, &events, below(s, 4));
        break;
    }
}

static void attend(struct sim *s, struct user *user)
{
    unsigned want = LINKPOOL_READ | (user->n_out || once_in(s, 6) ? LINKPOOL_WRITE : 0);

    int error = channel_watch(user->lease.channel, &events, want);

    HOLDS(s, !error || (error == LINKPOOL_ESTATE && pool__claim(&user->lease)->state == CLAIM_LOST));
}

static void speak(struct sim *s, struct user *user)
{
    int kind = kind_of(user);

    if (kind_is_shared(kind)) {
        send_message(s, user);
        return;
    }
    if (!user->n_out && !user->due && !user->shut)
        say(s, user, kind == KIND_ONE_WAY ? 'O' : once_in(s, 4) ? 'X' : 'D');
    flush(user);
}

void sim__channel(struct sim *s, struct user *user)
{
    unsigned what = below(s, 24);

    if (what == 0)
        do_oddly(s, user);
    else if (what < 4 && !kind_is_shared(kind_of(user)))
        read_once(s, user);
    else if (what < 10)
        attend(s, user);
    else
        speak(s, user);
}

/* ---- it has its channel ---- */

static struct seen_link *seen_of(struct sim *s, struct user *user)
{
    struct link_stats stats;

    link_stats(channel_link(user->lease.channel), &stats, sizeof stats);
    user->link = stats.id;
    return sim__seen(s, stats.id);
}

void sim__held(struct sim *s, struct user *user)
{
    struct seen_link *seen = seen_of(s, user);
    int key = sim__key_of(s, user->lease.host), asked = user->key;

    HOLDS(s, channel_lease(user->lease.channel) == &user->lease);
    HOLDS(s, key >= 0 && seen && seen->key == key);
    HOLDS(s, asked < 0 || asked == key); /* a link of another key */
    if (asked < 0)
        HOLDS(s, user->target->member[key] || user->target->changed_turn + 1 >= s->turns);
    user->key = key;
    if (!kind_is_shared(kind_of(user))) {
        HOLDS(s, !seen->held && !seen->over);                               /* one holder */
        HOLDS(s, user->lease.reused == (seen->uses > 0) || s->p.n_callers); /* a call may have come by in vain */
        HOLDS(s, !(user->lease.flags & POOL_FRESH) || !user->lease.reused);
    }
    if (!(user->lease.flags & POOL_FRESH) && user->asked_now)
        signs__lent(s, channel_link(user->lease.channel));
    seen->held++;
    seen->uses++;
    s->n_holding++;
    user->state = USER_HOLDING;
    user->serial = ++s->serial;
    user->n_out = user->n_in = user->due = 0;
    user->heard = user->midway = user->said = user->extra = user->shut = false;
    sim__note(s, "held", user->serial, user->link);
}
