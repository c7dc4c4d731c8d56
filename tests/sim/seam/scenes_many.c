/* scenes_many.c - drains, targets and bounds: what concerns more than one link. */
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

/* ---- drains ---- */

static void drain_with_leases(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++)
        hold(p, i, 0);
    give_back(p, 0);
    ask(p, 3, 0);
    drain(p, 10);
    ask(p, 4, 0);
    run(p, 1);
    give_back(p, 1);
    run(p, 1);
    give_back(p, 2);
    run(p, 1);
    give_back(p, 3);
    run(p, 1);
}

static void drain_times_out(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    hold(p, 0, 0);
    ask(p, 1, 1);
    drain(p, 2);
    run(p, 1.5);
    look(p);
    run(p, 2);
    look(p);
}

static void drain_of_0(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    ask(p, 1, 0);
    drain(p, 0);
    note(p, 0, "the call is over");
    run(p, 1);
}

static void host_drains(struct play *p)
{
    struct pool_host *of;

    echo_peer(p, 0);
    of = host(p, 0);
    hold(p, 0, 0);
    hold(p, 1, 0);
    note(p, 0, "drain: %d", pool_host_drain(of, 3));
    give_back(p, 1);
    run(p, 1);
    look(p);
    ask(p, 2, 0);
    run(p, 3);
    look(p);
    note(p, 0, "start: %d", pool_host_start(of));
    run(p, 0.5);
    hold(p, 2, 0);
    give_back(p, 2);
    run(p, 1);
    pool_host_drop(of);
}

/* ---- targets ---- */

static void first_fails_over(struct play *p)
{
    for (unsigned i = 0; i < 3; i++)
        echo_peer(p, i);
    behave(p, 0, TESTING_REFUSE);
    target(p, 0, &pool_pick_first, 0, 3);
    ask_target(p, 0, 0);
    run(p, 0.5);
    give_back(p, 0);
    run(p, 11);
    behave(p, 1, TESTING_REFUSE);
    cut(p, 1, LINK_RESET);
    run(p, 0.5);
    p->users[1].lease.flags = POOL_WAIT_FOR_READY;
    ask_target(p, 1, 0);
    run(p, 2);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 2);
    give_back(p, 1);
    run(p, 1);
    look(p);
}

static void one_after_the_other(struct play *p)
{
    for (unsigned i = 0; i < 4; i++) {
        echo_peer(p, i);
        delay(p, i, 0.01 + 0.02 * i, 0); /* so that they come up in this order */
    }
    target(p, 0, &pool_round_robin, 0, 4);
    ask_target(p, 0, 0);
    run(p, 0.5);
    give_back(p, 0);
    for (unsigned i = 1; i < 9; i++) {
        ask_target(p, i, 0);
        give_back(p, i);
    }
    behave(p, 2, TESTING_REFUSE);
    cut(p, 2, LINK_RESET);
    run(p, 2);
    for (unsigned i = 1; i < 9; i++)
        ask_target(p, i, 0);
    run(p, 1);
    give_all_back(p, 1, 8);
    behave(p, 2, TESTING_ACCEPT);
    run(p, 5);
    look(p);
}

static void target_is_updated(struct play *p)
{
    for (unsigned i = 0; i < 4; i++) {
        echo_peer(p, i);
        delay(p, i, 0.01 + 0.01 * i, 0);
    }
    target(p, 0, &pool_round_robin, 0, 2);
    ask_target(p, 0, 0);
    run(p, 0.5);
    update(p, 0, 1, 3);
    run(p, 0.5);
    look(p);
    ask_target(p, 1, 0);
    give_back(p, 0);
    run(p, 0.5);
    look(p);
    update(p, 0, 0, 0);
    ask_target(p, 2, 0);
    run(p, 0.5);
    give_back(p, 1);
    run(p, 1);
    look(p);
}

static void updated_while_connecting(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    echo_peer(p, 1);
    target(p, 0, &pool_pick_first, 0, 1);
    ask_target(p, 0, 0);
    run(p, 0.5);
    update(p, 0, 1, 1);
    run(p, 1);
    look(p);
    give_back(p, 0);
    run(p, 1);
}

static void target_is_removed(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    target(p, 0, &pool_pick_first, 0, 1);
    target(p, 1, &pool_pick_first, 1, 1);
    ask_target(p, 0, 0);
    ask_target(p, 1, 1);
    run(p, 0.5);
    pool_target_remove(p->targets[0]);
    pool_target_remove(p->targets[1]);
    run(p, 0.5);
    give_back(p, 0);
    run(p, 1);
    look(p);
}

static void on_target_drained(struct pool_target *target, void *data)
{
    note(data, 0, "target %s has drained", pool_target_name(target));
    pool_target_remove(target);
}

static void target_drains(struct play *p)
{
    echo_peer(p, 0);
    target(p, 0, &pool_pick_first, 0, 1);
    ask_target(p, 0, 0);
    ask_target(p, 1, 0);
    run(p, 0.5);
    note(p, 0, "drain: %d", pool_target_drain(p->targets[0], 1, on_target_drained, p));
    ask_target(p, 2, 0);
    run(p, 0.5);
    give_back(p, 0);
    run(p, 2);
    look(p);
}

/* ---- bounds ---- */

static void two_links(struct play *p)
{
    p->options.max_links = 2;
}

static void makes_room(struct play *p)
{
    for (unsigned i = 0; i < 3; i++)
        echo_peer(p, i);
    hold(p, 0, 0);
    hold(p, 1, 1);
    give_back(p, 0);
    run(p, 1);
    hold(p, 2, 2);
    look(p);
    ask(p, 3, 0);
    run(p, 1);
    give_back(p, 1); /* an older waiter elsewhere */
    run(p, 1);
    look(p);
    give_back(p, 2);
    give_back(p, 3);
    run(p, 1);
}

static void short_line(struct play *p)
{
    p->host.max_links = 1;
    p->options.max_line = 2;
}

static void line_is_full(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    for (unsigned i = 1; i < 5; i++)
        ask(p, i, 0);
    run(p, 1);
    cancel(p, 1);
    ask(p, 4, 0);
    give_back(p, 0);
    run(p, 1);
    give_back(p, 2);
    run(p, 1);
}

static void opens_few_at_once(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.1, 0);
    for (unsigned i = 0; i < 40; i++)
        ask(p, i, 0);
    run(p, 0.05);
    look(p);
    run(p, 2);
    look(p);
    give_all_back(p, 0, 40);
    run(p, 1);
}

static void fresh(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    give_back(p, 0);
    p->users[1].lease.flags = POOL_FRESH;
    hold(p, 1, 0);
    discard(p, 1);
    hold(p, 2, 0);
    give_back(p, 2);
    run(p, 1);
}

const struct scenario scenarios_many[] = {
    {.name = "drain with leases", .play = drain_with_leases},
    {.name = "drain times out", .play = drain_times_out},
    {.name = "drain of 0", .play = drain_of_0},
    {.name = "host drains", .play = host_drains},
    {.name = "pick first fails over", .play = first_fails_over},
    {.name = "round robin", .play = one_after_the_other},
    {.name = "target is updated", .play = target_is_updated},
    {.name = "target is updated while its only host connects", .play = updated_while_connecting},
    {.name = "target is removed", .play = target_is_removed},
    {.name = "target drains", .play = target_drains},
    {.name = "makes room", .options = two_links, .play = makes_room},
    {.name = "line is full", .options = short_line, .play = line_is_full},
    {.name = "opens few at once", .play = opens_few_at_once},
    {.name = "fresh link", .play = fresh},
    {0},
};
