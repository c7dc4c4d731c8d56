/* scenes_life.c - how links live and end: idle, age, use, the peer, the backoff after it. */
#include <stddef.h>

#include "tests/sim/seam/play.h"

static void hold(struct play *p, unsigned user, unsigned of)
{
    ask(p, user, of);
    run(p, 0.05);
}

static void give_all_back(struct play *p, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++)
        give_back(p, i);
}

static void give_back_then(struct user *user, enum event event)
{
    if (event == TOLD && user->lease.channel)
        give_back(user->play, user->i);
}

/* ---- time ends a link ---- */

static void brief(struct play *p)
{
    p->host.idle_timeout = 2;
}

static void idle_timeout(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    give_back(p, 0);
    run(p, 1.5);
    ask(p, 1, 0); /* in time: it begins anew */
    run(p, 0.2);
    give_back(p, 1);
    run(p, 1.9);
    look(p);
    run(p, 1);
    look(p);
}

static void idle_one_by_one(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 6; i++)
        hold(p, i, 0);
    for (unsigned i = 0; i < 6; i++) {
        give_back(p, i);
        run(p, 0.3);
    }
    run(p, 5);
    look(p);
}

static void ages(struct play *p)
{
    p->host.max_age = 10;
    p->host.idle_timeout = 0;
}

static void max_age(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++)
        hold(p, i, 0);
    give_back(p, 0);
    give_back(p, 1);
    run(p, 12);
    look(p);
    give_back(p, 2); /* it was too old before */
    run(p, 1);
    look(p);
}

static void used_up(struct play *p)
{
    p->host.max_uses = 2;
}

static void max_uses(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 5; i++) {
        hold(p, i, 0);
        give_back(p, i);
    }
    run(p, 1);
    look(p);
}

static void kept_up(struct play *p)
{
    p->host.min_links = 3;
    p->host.idle_timeout = 1;
}

static void min_links(struct play *p)
{
    echo_peer(p, 0);
    host(p, 0);
    run(p, 15);
    look(p);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 3);
    look(p);
    behave(p, 0, TESTING_REFUSE);
    cut(p, 0, LINK_RESET);
    run(p, 6);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 20);
    look(p);
}

static void soon_forgotten(struct play *p)
{
    p->host.idle_timeout = 1;
    p->options.host_timeout = 20;
}

static void host_is_forgotten(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    give_back(p, 0);
    run(p, 15);
    look(p);
    run(p, 30);
    look(p);
    hold(p, 0, 0);
}

static void recycle(struct play *p)
{
    struct pool_host *of;

    echo_peer(p, 0);
    of = host(p, 0);
    for (unsigned i = 0; i < 5; i++)
        hold(p, i, 0);
    give_all_back(p, 0, 4);
    note(p, 0, "recycle: %d", pool_host_recycle(of, 2));
    run(p, 5);
    look(p);
    give_back(p, 4);
    run(p, 1);
    hold(p, 0, 0);
    give_back(p, 0);
    note(p, 0, "recycle: %d", pool_host_recycle(of, 0));
    run(p, 1);
    look(p);
    pool_host_drop(of);
}

/* ---- the peer ends it ---- */

static void closes_while_idle(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    give_back(p, 0);
    run(p, 12);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 0.5);
    expect_idle(p, 0, 0, LINK_NO_REASON);
    look(p);
    hold(p, 1, 0);
    give_back(p, 1);
    run(p, 1);
    cut(p, 0, LINK_CLOSED_BY_PEER); /* young, and nothing was heard on it */
    run(p, 0.5);
    look(p);
    ask(p, 2, 0);
    run(p, 5);
}

static void resets_while_idle(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    exchange(p, 0);
    give_back(p, 0);
    run(p, 20);
    expect_idle(p, 0, 1, LINK_NO_REASON);
    cut(p, 0, LINK_RESET);
    run(p, 0.5);
    expect_idle(p, 0, 0, LINK_RESET);
    look(p);
    ask(p, 1, 0);
    run(p, 2);
    look(p);
}

static void dies_young(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT_AND_CLOSE);
    delay(p, 0, 0, 0.02);
    p->users[0].then = give_back_then;
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    for (unsigned i = 0; i < 8; i++) {
        ask(p, 0, 0);
        run(p, 3);
        look(p);
    }
    behave(p, 0, TESTING_ACCEPT_AND_RESET);
    ask(p, 0, 0);
    run(p, 6);
    look(p);
}

/* ---- backoff ---- */

static void long_waits(struct play *p)
{
    p->backoff = backoff_edge;
    p->host.backoff = &p->backoff;
}

static void backoff_grows(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    p->users[0].lease.timeout = 300;
    ask(p, 0, 0);
    run(p, 200);
    look(p);
    pool_reset_backoff(p->pool);
    run(p, 1);
    look(p);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 60);
    look(p);
}

static void gives_up(struct play *p)
{
    p->backoff.max_attempts = 3;
}

static void offline(struct play *p)
{
    struct pool_host *of;

    peer(p, 0, TESTING_REFUSE);
    of = host(p, 0);
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    ask(p, 0, 0);
    run(p, 6);
    look(p);
    behave(p, 0, TESTING_ACCEPT);
    ask(p, 1, 0);
    run(p, 1);
    note(p, 0, "start: %d", pool_host_start(of));
    run(p, 1);
    look(p);
    hold(p, 1, 0);
    give_back(p, 1);
    pool_host_drop(of);
}

static void one_probe(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    for (unsigned i = 0; i < 30; i++) {
        p->users[i].lease.flags = POOL_WAIT_FOR_READY;
        p->users[i].then = give_back_then;
        ask(p, i, 0);
    }
    run(p, 2);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 3);
    look(p);
}

const struct scenario scenarios_life[] = {
    {.name = "idle time-out", .options = brief, .play = idle_timeout},
    {.name = "idle one by one", .options = brief, .play = idle_one_by_one},
    {.name = "max_age", .options = ages, .play = max_age},
    {.name = "max_uses", .options = used_up, .play = max_uses},
    {.name = "min_links", .options = kept_up, .play = min_links},
    {.name = "host is forgotten", .options = soon_forgotten, .play = host_is_forgotten},
    {.name = "recycle", .play = recycle},
    {.name = "peer closes while idle", .play = closes_while_idle},
    {.name = "peer resets while idle", .play = resets_while_idle},
    {.name = "peer hangs up at once", .play = dies_young},
    {.name = "backoff grows", .options = long_waits, .play = backoff_grows},
    {.name = "offline", .options = gives_up, .play = offline},
    {.name = "one probe", .play = one_probe},
    {0},
};
