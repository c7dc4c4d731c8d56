/* random_users.c - the users of the random game: each follows its lease, and asserts what it is told. */
#include <math.h>

#include "tests/unit/random.h"

void random__react(struct game *g)
{
    if (g->depth >= DEEPEST || g->calm)
        return;
    g->depth++;
    if (once_in(g, 3))
        random__act(g);
    g->depth--;
}

void random__release(struct game *g, struct user *user, enum pool_disposition disposition)
{
    enum user_state was = user->state;
    int answer;

    user->state = USER_FREE;
    answer = pool_release(&user->lease, disposition);
    HOLDS(g, answer == (was == USER_HOLDING ? 0 : LINKPOOL_ESTATE));
    HOLDS(g, !user->lease.channel);
    if (was != USER_HOLDING)
        user->state = was;
}

static void on_done(struct pool_lease *lease)
{
    struct user *user = lease->data;
    struct game *g = user->game;

    HOLDS(g, user->state == USER_WAITING);
    HOLDS(g, (lease->status == POOL_READY) == (lease->channel != NULL));
    HOLDS(g, testing_now(g->t) <= user->deadline + 1e-6);
    g->n_done++;
    g->n_ready += lease->status == POOL_READY;
    user->state = lease->channel ? USER_HOLDING : USER_FREE;
    if (g->calm && lease->channel)
        random__release(g, user, POOL_REUSE);
    else
        random__react(g);
}

static void on_closed(struct pool_lease *lease)
{
    struct user *user = lease->data;
    struct game *g = user->game;

    HOLDS(g, user->state == USER_HOLDING);
    HOLDS(g, !lease->channel && lease->status < 0);
    user->state = USER_FREE;
    random__react(g);
}

static void note_answer(struct game *g, struct user *user, int answer)
{
    double timeout = user->lease.timeout;

    HOLDS(g, answer == user->lease.status);
    HOLDS(g, (answer == POOL_READY) == (user->lease.channel != NULL));
    HOLDS(g, answer != LINKPOOL_EINVAL && answer != LINKPOOL_ESTATE && answer != LINKPOOL_ETIMEDOUT);
    HOLDS(g, (answer == LINKPOOL_EFULL) == (user->lease.bound != POOL_BOUND_NONE));
    user->state = answer == POOL_READY ? USER_HOLDING : answer == POOL_PENDING ? USER_WAITING : USER_FREE;
    user->deadline = testing_now(g->t) + (timeout > 0 ? timeout : g->options.wait_timeout);
}

static struct pool_lease *wish(struct game *g, struct user *user)
{
    struct pool_lease *lease = &user->lease;

    lease->done = on_done;
    lease->closed = on_closed;
    lease->data = user;
    lease->timeout = TIME_OF(g, 0, 0, 0, 0.001, 0.3, 2, INFINITY);
    lease->flags = once_in(g, 3) ? POOL_WAIT_FOR_READY : 0;
    lease->flags |= once_in(g, 6) ? POOL_FRESH : 0;
    lease->avoid = once_in(g, 4) ? g->pins[below(g, PINS)] : NULL;
    lease->hash = draw(g);
    return lease;
}

void random__acquire(struct game *g, struct user *user)
{
    struct pool_host *host = g->pins[below(g, PINS)];
    struct pool_target *target = g->targets[below(g, TARGETS)];
    enum user_state was = user->state;
    char name[] = {(char)('a' + below(g, TARGETS)), '\0'};
    int answer;

    if (was != USER_FREE) {
        HOLDS(g, pool_acquire(g->pool, random__addresses[0], &user->lease) == LINKPOOL_ESTATE);
        return;
    }
    wish(g, user);
    if (host && once_in(g, 3))
        answer = pool_acquire_host(host, &user->lease);
    else if (target && once_in(g, 2))
        answer = pool_acquire_target(target, &user->lease);
    else
        answer = pool_acquire(g->pool, once_in(g, 2) ? name : random__addresses[below(g, PEERS)], &user->lease);
    note_answer(g, user, answer);
}

void random__cancel(struct game *g, struct user *user)
{
    int answer = pool_cancel(&user->lease);

    HOLDS(g, answer == (user->state == USER_WAITING ? 0 : LINKPOOL_ESTATE));
    if (!answer)
        user->state = USER_FREE;
}

/* ---- what holders do ---- */

static void read_some(struct game *g, struct channel *channel)
{
    char bytes[64];

    channel_read(channel, bytes, once_in(g, 2) ? sizeof bytes : 1);
}

static void on_readable(struct channel *channel)
{
    struct user *user = channel_lease(channel)->data;
    struct game *g = user->game;
    char bytes[64];

    HOLDS(g, user->state == USER_HOLDING && user->lease.channel == channel);
    if (channel_read(channel, bytes, sizeof bytes) <= 0) {
        random__release(g, user, POOL_REUSE);
        return;
    }
    if (once_in(g, 4))
        random__release(g, user, once_in(g, 4) ? POOL_DISCARD : POOL_REUSE);
    random__react(g);
}

static void on_writable(struct channel *channel)
{
    struct user *user = channel_lease(channel)->data;

    HOLDS(user->game, user->state == USER_HOLDING && user->lease.channel == channel);
    channel_want(channel, LINKPOOL_READ);
    random__react(user->game);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct user *user = channel_lease(channel)->data;

    (void)bytes;
    HOLDS(user->game, user->state == USER_HOLDING && user->lease.channel == channel && n == 1);
    if (once_in(user->game, 3))
        random__release(user->game, user, POOL_REUSE);
    random__react(user->game);
}

void random__use_channel(struct game *g, struct user *user)
{
    static const struct channel_events events = {
        .readable = on_readable, .writable = on_writable, .message = on_message};
    struct channel *channel = user->lease.channel;

    if (!channel)
        return;
    switch (below(g, 12)) {
    case 0:
        channel_shutdown(channel);
        break;
    case 1:
        channel_keep_private(channel);
        break;
    case 2:
        channel_fd(channel);
        break;
    case 3:
        channel_want(channel, below(g, 4));
        break;
    case 4:
    case 5:
        channel_watch(channel, &events, LINKPOOL_READ | (once_in(g, 3) ? LINKPOOL_WRITE : 0));
        break;
    case 6:
        read_some(g, channel);
        break;
    default:
        channel_writev(channel, &(struct iovec){"some bytes", 1 + below(g, 10)}, 1);
        channel_send(channel, "m", 1);
        break;
    }
}
