/* cases_xf.c - the cases XF: ends and drains, of all and of parts, from anywhere. */
#include "tests/conformance/cases.h"

#include <ev.h>

static unsigned drained;
static double drained_at;

static void on_drained(struct pool *pool, void *data)
{
    (void)data;
    drained++;
    drained_at = pool_now(pool);
}

Test(cases, XF2_each_in_line_has_one_outcome_when_the_pool_drains)
{
    struct fake_world world;
    struct fake_user holder = {0}, users[20] = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    cases_ask(&world, users, 20, A);
    pool_drain(world.pool, 1, on_drained, NULL);
    fake_run(&world, 2);
    cr_assert(eq(uint, cases_count(users, 20, LINKPOOL_ECLOSED), 20));
    for (int i = 0; i < 20; i++)
        cr_assert(eq(uint, users[i].done, 1));
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(cases, XF3_an_idle_pool_is_drained_in_the_same_turn_or_the_next)
{
    struct fake_world world;
    struct fake_user users[10] = {0};

    cases_peer(&world, 10);
    cases_ask(&world, users, 10, A);
    fake_settle(&world);
    for (int i = 0; i < 10; i++)
        fake_give_back(&users[i]);
    double from = testing_now(world.t);
    pool_drain(world.pool, INFINITY, on_drained, NULL);
    fake_turn(&world);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(dbl, drained_at, from));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(cases, XF4_a_drain_with_holders_is_left_by_their_return_or_by_force)
{
    for (int forced = 0; forced < 2; forced++) {
        struct fake_world world;
        struct fake_user holder = {0};
        cases_peer(&world, 1);
        drained = 0;
        fake_hold(&world, &holder, A);
        pool_drain(world.pool, 10, on_drained, NULL);
        cr_assert(eq(int, pool_drain(world.pool, 1, on_drained, NULL), LINKPOOL_ESTATE));
        fake_run(&world, 9);
        cr_assert(eq(uint, drained, 0));
        if (!forced)
            fake_give_back(&holder);
        fake_run(&world, 2);
        cr_assert(eq(uint, drained, 1));
        cr_assert(eq(uint, holder.closed, forced));
        fake_world_end(&world);
    }
}

static void ignore(struct pool_lease *lease)
{
    (void)lease;
}

static void end_pool(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    pool_free(timer->data);
}

static void give_up(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    *(bool *)timer->data = true;
    ev_break(loop, EVBREAK_ALL);
}

/* Runs until nothing is active; false: 3 s have passed first. */
static bool run_out(struct ev_loop *loop)
{
    ev_timer limit;
    bool is_over = false;

    ev_timer_init(&limit, give_up, 3, 0);
    limit.data = &is_over;
    ev_timer_start(loop, &limit);
    ev_unref(loop); /* it keeps nobody */
    ev_run(loop, 0);
    ev_ref(loop);
    ev_timer_stop(loop, &limit);
    return !is_over;
}

/* On the real loop: what is left running in it would keep ev_run() from returning. */
Test(cases, XF5_after_the_end_nothing_is_left_in_the_loop)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct pool_lease held = {.done = ignore}, waits = {.done = ignore, .flags = POOL_WAIT_FOR_READY};
    ev_timer timer;

    struct testing_peer *peer = testing_peer_on_loop(loop, "127.0.0.1:0", TESTING_ACCEPT);
    struct pool *pool = pool_new(loop, NULL);
    pool_acquire(pool, testing_peer_address(peer), &held);
    pool_acquire(pool, "unix:/nonexistent/socket", &waits); /* it is tried again and again */
    while (!held.channel)
        ev_run(loop, EVRUN_ONCE);
    testing_peer_free(peer);
    ev_timer_init(&timer, end_pool, 0, 0);
    timer.data = pool;
    ev_timer_start(loop, &timer);
    cr_assert(run_out(loop));
    cr_assert(eq(int, waits.status, LINKPOOL_ECLOSED));
    ev_loop_destroy(loop);
}

Test(cases, XF7_drain_and_then_abort)
{
    struct fake_world world;
    struct fake_user holder = {0}, waits = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &waits, A);
    pool_drain(world.pool, INFINITY, on_drained, NULL);
    fake_run(&world, 1);
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(int, waits.status, LINKPOOL_ECLOSED));
    fake_run(&world, 1);
    cr_assert(eq(uint, drained, 0));
    fake_world_end(&world);
}

Test(cases, XF8_a_host_is_removed_with_links_in_every_state)
{
    struct fake_world world;
    struct fake_user held = {0}, idle = {0}, connects = {0}, waits = {0};
    struct testing_peer *peer;

    cases_begin(&world);
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    peer = fake_echo(&world, A);
    fake_peer(&world, B, TESTING_REFUSE);
    struct pool_target *target = cases_target(&world, &pool_round_robin, 2); /* B: backoff */
    fake_hold(&world, &held, "db");
    fake_hold(&world, &idle, "db");
    testing_peer_delay(peer, 0.1, 0.1);
    cases_ask(&world, &connects, 1, "db");
    fake_run(&world, 0.15); /* shaking hands */
    fake_give_back(&idle);  /* resetting */
    fake_ask(&world, &waits, "db");
    struct pool_host_stats a = fake_host_stats(fake_host(&world, A)), b = fake_host_stats(fake_host(&world, B));
    cr_assert(eq(uint, a.links[LINK_READY], 1));
    cr_assert(eq(uint, a.links[LINK_RESETTING], 1));
    cr_assert(ge(uint, a.links[LINK_HANDSHAKING], 1));
    cr_assert(eq(uint, b.links[LINK_BACKOFF], 1));
    cases_update(target, NULL, 0);
    fake_settle(&world);
    cr_assert(eq(uint, held.closed, 0));
    cr_assert(eq(uint, fake_stats(&world).leased, 1u + (connects.lease.channel != NULL)));
    fake_give_back(&held);
    if (connects.lease.channel)
        fake_give_back(&connects);
    fake_run(&world, 10);
    cr_assert(ne(int, waits.status, POOL_PENDING));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_run(&world, 400);
    cr_assert(eq(uint, fake_stats(&world).hosts, 0)); /* and then it is forgotten */
    fake_world_end(&world);
}

Test(cases, XF9_the_end_does_not_wait_for_what_is_out)
{
    struct fake_world world;
    struct fake_user holder = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    fake_send(&holder, "q"); /* and never comes back */
    double from = testing_now(world.t);
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(dbl, testing_now(world.t), from));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(cases, XF10_what_is_out_as_the_pool_ends_is_told_and_over)
{
    struct fake_world world;
    struct fake_user users[3] = {0};

    cases_peer(&world, 3);
    cases_ask(&world, users, 3, A);
    fake_settle(&world);
    pool_free(world.pool);
    world.pool = NULL;
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(uint, users[i].closed, 1));
        cr_assert(eq(ptr, users[i].lease.channel, NULL));
        cr_assert(eq(int, pool_release(&users[i].lease, POOL_REUSE), LINKPOOL_ESTATE));
    }
    fake_world_end(&world);
}

/* ---- from inside ---- */

static struct fake_world *the_world;
static struct pool_target *the_target;
static int what_ends;
static unsigned n_ended;

static void end_it(void)
{
    n_ended++;
    switch (what_ends) {
    case 0:
        pool_free(the_world->pool);
        the_world->pool = NULL;
        break;
    case 1:
        pool_host_drain(fake_host(the_world, A), 0);
        break;
    case 2:
        pool_target_remove(the_target);
        break;
    default:
        pool_drain(the_world->pool, 0, NULL, NULL);
        break;
    }
}

static void end_from_lease(struct pool_lease *lease)
{
    (void)lease;
    if (!n_ended)
        end_it();
}

static void end_from_channel(struct channel *channel)
{
    channel_want(channel, 0);
    end_it();
}

Test(cases, XF11_pool_host_and_target_end_from_inside_each_callback)
{
    static const struct channel_events events = {.readable = end_from_channel, .writable = end_from_channel};

    for (what_ends = 0; what_ends < 4; what_ends++)
        for (int from = 0; from < 4; from++) {
            struct fake_world world;
            struct fake_user user = {0}, other = {0};
            struct testing_peer *peer = cases_peer(&world, 2);
            the_world = &world;
            n_ended = 0;
            the_target = cases_target(&world, &pool_pick_first, 1);
            fake_hold(&world, &other, "db");
            fake_ask(&world, &user, "db");
            if (from == 0)
                user.lease.done = end_from_lease;
            if (from == 3)
                user.lease.closed = end_from_lease;
            fake_settle(&world);
            if (from == 1 || from == 2)
                channel_watch(user.lease.channel, &events, from == 1 ? LINKPOOL_READ : LINKPOOL_WRITE);
            testing_peer_say(peer, "!", 1);
            fake_settle(&world);
            if (from == 3) {
                pool_host_drain(fake_host(&world, A), 0);
                fake_settle(&world);
            }
            bool is_taken = what_ends != 2 || from == 3; /* a target that is removed takes nobody's channel */
            cr_assert(eq(uint, n_ended, 1), "%d from %d", what_ends, from);
            cr_assert(eq(int, other.closed, is_taken), "%d from %d", what_ends, from);
            fake_world_end(&world);
        }
}

static struct link *links[2];
static unsigned called;

static void free_both(struct link *link)
{
    (void)link;
    called++;
    for (int i = 0; i < 2; i++) {
        link_free(links[i]);
        links[i] = NULL;
    }
}

static void free_connected(struct link *link, struct channel *channel)
{
    (void)channel;
    free_both(link);
}

static void free_connecting(struct link *link, unsigned attempt)
{
    (void)attempt;
    free_both(link);
}

static void free_disconnected(struct link *link, enum link_reason reason)
{
    (void)reason;
    free_both(link);
}

/* Two that have something to do in one turn: the first to be called frees both. */
Test(cases, XF12_what_was_still_to_run_in_the_turn_of_the_end_does_not_run)
{
    for (int from = 0; from < 3; from++) {
        struct testing *t = testing_new(1);
        struct link_options options;
        called = 0;
        struct driver *driver = testing_driver(t);
        link_options_init(&options);
        options.env = testing_env(t);
        options.connecting = from == 0 ? free_connecting : NULL;
        options.connected = from == 1 ? free_connected : NULL;
        options.disconnected = from == 2 ? free_disconnected : NULL;
        struct testing_peer *peer = testing_peer_add(t, A, TESTING_ACCEPT);
        for (int i = 0; i < 2; i++) {
            links[i] = link_new(driver, A, &options);
            link_start(links[i]);
        }
        testing_run_for(t, 0.1);
        testing_peer_cut(peer, LINK_RESET); /* both die in one turn */
        testing_run_for(t, 0.1);
        cr_assert(eq(ptr, (void *)links[0], NULL), "from %d", from);
        cr_assert(eq(uint, called, 1), "from %d", from);
        cr_assert(eq(uint, testing_open_descriptors(t), 0));
        driver_free(driver);
        cr_assert(eq(sz, testing_blocks(t), 0));
        cr_assert(eq(uint, testing_misuses(t), 0));
        testing_free(t);
    }
}

static void on_target_drained(struct pool_target *target, void *data)
{
    (void)target, (void)data;
    drained++;
}

Test(cases, XF13_pool_host_and_target_can_be_drained)
{
    struct fake_world world;
    struct fake_user holder = {0};

    cases_peer(&world, 1);
    struct pool_target *target = cases_target(&world, &pool_pick_first, 1);
    fake_hold(&world, &holder, "db");
    cr_assert(eq(int, pool_target_drain(target, 10, on_target_drained, NULL), 0));
    cr_assert(eq(int, pool_host_drain(holder.lease.host, 10), 0));
    cr_assert(eq(int, pool_drain(world.pool, 10, on_drained, NULL), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, drained, 0));
    fake_exchange(&world, &holder);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(uint, drained, 2));
    cr_assert(eq(uint, holder.closed, 0));
    fake_world_end(&world);
}

Test(cases, XF14_a_soft_stop_serves_what_it_had_accepted)
{
    struct fake_world world;
    struct fake_user users[5] = {0}, late = {0};

    cases_peer(&world, 1);
    cases_ask(&world, users, 5, A);
    fake_settle(&world);
    pool_drain(world.pool, INFINITY, on_drained, NULL);
    cr_assert(eq(int, fake_ask(&world, &late, A), LINKPOOL_ECLOSED));
    for (int i = 0; i < 5; i++) {
        fake_run(&world, 0.01);
        cr_assert(eq(int, users[i].status, POOL_READY));
        fake_exchange(&world, &users[i]);
        cr_assert(eq(uint, drained, 0));
        fake_give_back(&users[i]);
    }
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}
