/* users.c - those who ask for channels: what they do, and what they are told. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/seam/play.h"

static void note_lease(const struct user *user, const char *what)
{
    const struct pool_lease *lease = &user->lease;

    note(user->play, 0, "user %u %s: %d, peer %u, %s, errno %d, stage %d, bound %d, fate %d, reused %d", user->i, what,
        lease->status, place_of(user->play, lease->host), link_reason_text(lease->reason), lease->system_errno,
        lease->stage, lease->bound, lease->fate, lease->reused);
}

static void then(struct user *user, enum event event)
{
    if (user->then)
        user->then(user, event);
}

static void on_done(struct pool_lease *lease)
{
    struct user *user = (struct user *)lease;

    must(user->play, user->waits, "told once");
    user->waits = false;
    note_lease(user, "is told");
    if (lease->channel && user->reads)
        listen_to(user->play, user->i);
    then(user, TOLD);
}

static void on_closed(struct pool_lease *lease)
{
    struct user *user = (struct user *)lease;

    must(user->play, !user->waits, "what is closed was told");
    note_lease(user, "is closed");
    then(user, TAKEN);
}

/* ---- asking and giving back ---- */

static struct pool_lease *begin(struct play *p, unsigned i)
{
    struct user *user = &p->users[i];

    user->play = p;
    user->i = i;
    user->lease.done = on_done;
    user->lease.closed = on_closed;
    user->heard = 0;
    return &user->lease;
}

static void asked(struct play *p, unsigned i, int status)
{
    struct user *user = &p->users[i];

    user->waits = status == POOL_PENDING;
    note_lease(user, "asks");
    if (status == POOL_READY && user->reads)
        listen_to(p, i);
}

void ask(struct play *p, unsigned i, unsigned to)
{
    asked(p, i, pool_acquire(p->pool, p->address[to], begin(p, i)));
}

void ask_target(struct play *p, unsigned i, unsigned to)
{
    asked(p, i, pool_acquire_target(p->targets[to], begin(p, i)));
}

void expect(struct play *p, unsigned i, int status, enum link_reason reason)
{
    must(p, !p->users[i].waits && p->users[i].lease.status == status && p->users[i].lease.reason == reason,
        "it ends as it should");
}

void cancel(struct play *p, unsigned i)
{
    int result = pool_cancel(&p->users[i].lease);

    p->users[i].waits = p->users[i].waits && result;
    note(p, 0, "user %u cancels: %d", i, result);
}

void give_back(struct play *p, unsigned i)
{
    int result = pool_release(&p->users[i].lease, POOL_REUSE);

    note(p, 0, "user %u gives back: %d", i, result);
}

void discard(struct play *p, unsigned i)
{
    int result = pool_release(&p->users[i].lease, POOL_DISCARD);

    note(p, 0, "user %u discards: %d", i, result);
}

/* ---- bytes ---- */

static void note_end(struct user *user, long got)
{
    note(user->play, 0, "user %u reads %ld after %zu: %s, errno %d", user->i, got, user->heard,
        link_reason_text(user->lease.reason), user->lease.system_errno);
}

static void on_readable(struct channel *channel)
{
    struct user *user = (struct user *)channel_lease(channel);
    char bytes[8192];
    ssize_t got;

    while ((got = channel_read(channel, bytes, sizeof bytes)) > 0) {
        user->heard += (size_t)got;
        if (!user->counts_only)
            note(user->play, 0, "user %u hears %.*s", user->i, (int)(got < 40 ? got : 40), bytes);
    }
    if (got == LINKPOOL_EAGAIN) {
        then(user, HEARD);
        return;
    }
    note_end(user, got);
    channel_want(channel, 0);
    then(user, ENDED);
}

static void go_on_sending(struct user *user)
{
    static const char bytes[65536];
    ssize_t sent = 0;

    while (user->to_send && sent >= 0) {
        size_t n = user->to_send < sizeof bytes ? user->to_send : sizeof bytes;
        sent = channel_writev(user->lease.channel, &(struct iovec){(void *)bytes, n}, 1);
        user->to_send -= sent > 0 ? (size_t)sent : 0;
        user->was_blocked = user->was_blocked || sent == LINKPOOL_EAGAIN;
    }
    if (sent < 0 && sent != LINKPOOL_EAGAIN)
        note(user->play, 0, "user %u cannot send: %ld", user->i, (long)sent);
    channel_want(user->lease.channel, LINKPOOL_READ | (user->to_send && sent == LINKPOOL_EAGAIN ? LINKPOOL_WRITE : 0u));
}

static void on_writable(struct channel *channel)
{
    struct user *user = (struct user *)channel_lease(channel);

    go_on_sending(user);
    if (user->to_send)
        return;
    note(user->play, 0, "user %u has sent all, blocked %d", user->i, user->was_blocked);
    then(user, SENT_ALL);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct user *user = (struct user *)channel_lease(channel);

    user->heard += n;
    note(user->play, 0, "user %u gets %.*s", user->i, (int)n, (const char *)bytes);
    then(user, HEARD);
}

static const struct channel_events events = {.readable = on_readable, .writable = on_writable, .message = on_message};

/* Who has none was not served: the logs differ by then, or both say so. */
static bool has_channel(struct play *p, unsigned i)
{
    if (!p->users[i].lease.channel)
        note(p, 0, "user %u has no channel", i);
    return p->users[i].lease.channel;
}

void listen_to(struct play *p, unsigned i)
{
    if (has_channel(p, i))
        channel_watch(p->users[i].lease.channel, &events, LINKPOOL_READ);
}

void want(struct play *p, unsigned i, unsigned wanted)
{
    if (has_channel(p, i))
        note(p, 0, "user %u wants %u: %d", i, wanted, channel_want(p->users[i].lease.channel, wanted));
}

void say(struct play *p, unsigned i, const char *text)
{
    struct channel *channel = p->users[i].lease.channel;
    size_t n = strlen(text);
    long result;

    if (!has_channel(p, i))
        return;
    if (p->host.protocol && p->host.protocol->flags & PROTOCOL_SHARED)
        result = channel_send(channel, text, n);
    else
        result = channel_writev(channel, &(struct iovec){(void *)text, n}, 1);
    note(p, 0, "user %u says %s: %ld", i, text, result);
}

void send_much(struct play *p, unsigned i, size_t n)
{
    if (!has_channel(p, i))
        return;
    p->users[i].to_send = n;
    channel_watch(p->users[i].lease.channel, &events, LINKPOOL_READ);
    go_on_sending(&p->users[i]);
    note(p, 0, "user %u sends much, blocked %d", i, p->users[i].was_blocked);
}

void exchange(struct play *p, unsigned i)
{
    listen_to(p, i);
    say(p, i, "?");
    run(p, 0.001);
}
