/* cases_v_storm.c - the cases VG1 to VG7 and XH2: storms and outages in small. The full gates are `make storm`. */
#include "tests/conformance/cases.h"

#include <limits.h>

/* ---- the curve ---- */

static void dies_after_1_s(void *data, struct testing_conn *conn)
{
    struct testing *t = data;

    testing_at(t, testing_now(t) + 1, (void (*)(void *))testing_conn_close, conn);
}

static void expect_curve(const struct testing_peer *peer, double life)
{
    cr_assert(ge(uint, testing_peer_attempts(peer), 5));
    for (unsigned i = 0; i + 1 < testing_peer_attempts(peer); i++) {
        double gap = testing_peer_attempt_at(peer, i + 1) - testing_peer_attempt_at(peer, i) - life;
        double d = fmin(2, 0.2 * (1 << (i < 8 ? i : 8)));
        cr_assert(ge(dbl, gap, d / 2 - 1e-3), "gap %u of %g", i, gap);
        cr_assert(le(dbl, gap, d + 1e-3), "gap %u of %g", i, gap);
    }
}

Test(cases, VG1_attempts_follow_the_curve_however_the_peer_hangs_up)
{
    for (int how = 0; how < 3; how++) {
        struct fake_world world;
        cases_begin(&world);
        world.host.protocol = &fake_session;
        world.host.min_links = 1; /* somebody wants it always */
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, A);
        if (how == 0)
            testing_peer_behave(peer, TESTING_ACCEPT_AND_RESET);
        if (how == 1)
            testing_peer_cut_after(peer, 1, LINK_RESET); /* right after the handshake */
        if (how == 2)
            testing_peer_on(peer, &(struct testing_server){.size = sizeof(struct testing_server),
                                      .accepted = dies_after_1_s,
                                      .received = NULL,
                                      .data = world.t});
        cr_assert(ne(ptr, pool_host(world.pool, A), NULL));
        if (how == 2)
            testing_peer_greet(peer, "H", 1);
        fake_run(&world, 20);
        expect_curve(peer, how == 2 ? 1 : 0);
        fake_world_end(&world);
    }
}

Test(cases, VG2_delays_stay_between_floor_and_cap_for_any_attempt)
{
    static const unsigned attempts[] = {
        0, 1, 2, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 1000000, UINT_MAX - 1, UINT_MAX};
    static const double ten_years = 10 * 365.25 * 86400;
    struct backoff_policy policies[3] = {backoff_default, backoff_default, backoff_default};

    policies[1].base = 5e-324; /* the least there is, and the most that is allowed */
    policies[1].floor = 0;
    policies[2].base = policies[2].cap = ten_years;
    policies[2].factor = 1e300;
    for (int p = 0; p < 3; p++)
        for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
            for (double draw = 0; draw < 1; draw += 0.249) {
                double delay = backoff_delay(&policies[p], &(struct backoff_history){.attempt = attempts[i]}, draw);
                cr_assert(ge(dbl, delay, policies[p].floor));
                cr_assert(le(dbl, delay, policies[p].cap));
            }
    for (unsigned n = 1; n <= 1000000; n++) {
        double delay = backoff_delay(&backoff_default, &(struct backoff_history){.attempt = n}, 0.5);
        cr_assert(delay >= 0.15 && delay <= 2);
    }
}

/* ---- crowds ---- */

enum {
    CROWD = 400
};
static struct fake_user crowd[CROWD];

/* CROWD links, kept up, to a server that shakes hands `rate` times a second. */
static struct testing_peer *begin_crowd(struct fake_world *world, double rate)
{
    cases_begin(world);
    world->host.min_links = world->host.max_links = CROWD;
    world->host.protocol = &fake_session;
    fake_world_open(world);
    struct testing_peer *peer = fake_echo(world, A);
    testing_peer_accept_rate(peer, rate);
    cr_assert(ne(ptr, pool_host(world->pool, A), NULL));
    return peer;
}

static unsigned attempts_within(const struct testing_peer *peer, double from, double to)
{
    unsigned n = 0;

    for (unsigned i = 0; i < testing_peer_attempts(peer); i++)
        n += testing_peer_attempt_at(peer, i) >= from && testing_peer_attempt_at(peer, i) < to;
    return n;
}

/* The most within 0.1 s, from then on. */
static unsigned densest(const struct testing_peer *peer, double from)
{
    unsigned most = 0;

    for (unsigned i = 0; i < testing_peer_attempts(peer); i++) {
        double at = testing_peer_attempt_at(peer, i);
        unsigned n = at >= from ? attempts_within(peer, at, at + 0.1) : 0;
        most = n > most ? n : most;
    }
    return most;
}

static bool all_up(void *world)
{
    return fake_stats(world).idle == CROWD;
}

Test(cases, VG3_a_restarted_server_has_all_back_without_a_herd)
{
    struct fake_world world;
    struct testing_peer *peer = begin_crowd(&world, 100);

    cr_assert(testing_run_until(world.t, all_up, &world, 60));
    fake_run(&world, 20);
    double down = testing_now(world.t);
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 60);
    double up = testing_now(world.t);
    /* While it is away: what the limit lets out at once, which is one event, and then one probe a backoff. */
    cr_assert(le(uint, attempts_within(peer, down, up), 32 + 60 + 4));
    testing_peer_behave(peer, TESTING_ACCEPT);
    cr_assert(testing_run_until(world.t, all_up, &world, 4.0 * CROWD / 100));
    cr_assert(le(uint, attempts_within(peer, up, INFINITY), CROWD + CROWD / 50)); /* hardly one in vain */
    cr_assert(le(uint, densest(peer, up), 32));
    fake_world_end(&world);
}

Test(cases, VG4_as_the_server_slows_down_attempts_grow_fewer)
{
    struct fake_world world;
    struct testing_peer *peer = begin_crowd(&world, 100);

    fake_run(&world, 1);
    unsigned healthy = attempts_within(peer, testing_now(world.t) - 1, INFINITY);
    testing_peer_accept_rate(peer, 0.5); /* those it meets in this time, it meets too late */
    fake_run(&world, 10);
    double from = testing_now(world.t);
    fake_run(&world, 20);
    unsigned slow = attempts_within(peer, from, INFINITY);
    fake_run(&world, 20);
    cr_assert(ge(uint, healthy, 40));
    cr_assert(le(uint, slow, 20), "%u in a second, then %u in 20", healthy, slow); /* one a backoff */
    cr_assert(le(uint, attempts_within(peer, from + 20, INFINITY), slow + slow / 4 + 2));
    fake_world_end(&world);
}

Test(cases, VG5_handshakes_that_outgrow_their_time_halve_what_is_opened_at_once)
{
    struct fake_world world;
    struct testing_peer *peer = begin_crowd(&world, 0);

    fake_run(&world, 15);
    testing_peer_cut(peer, LINK_RESET);
    testing_peer_delay(peer, 0, 5); /* and nobody gives them more than 3 */
    fake_run(&world, 1);
    unsigned before = fake_host_stats(fake_host(&world, A)).connect_limit;
    cr_assert(eq(uint, before, world.host.first_connecting)); /* what it had learned went with the last link */
    fake_run(&world, 30);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).connect_limit, before / 2));
    testing_peer_delay(peer, 0, 0);
    cr_assert(testing_run_until(world.t, all_up, &world, 30)); /* nobody has to help */
    fake_world_end(&world);
}

Test(cases, VG6_the_limits_of_opening_change_while_it_runs)
{
    struct fake_world world;
    struct testing_peer *peer = begin_crowd(&world, 20);

    fake_run(&world, 2);
    unsigned ready = fake_stats(&world).idle;
    cr_assert(lt(uint, 10, ready));
    world.host.first_connecting = world.host.max_connecting = 1;
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, A), &world.host), 0));
    fake_run(&world, 1);
    cr_assert(le(uint, fake_stats(&world).connecting, 1));
    cr_assert(ge(uint, fake_stats(&world).idle, ready));
    world.host.first_connecting = world.host.max_connecting = 64;
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, A), &world.host), 0));
    testing_peer_accept_rate(peer, 0);
    cr_assert(testing_run_until(world.t, all_up, &world, 10));
    world.options.max_connecting = 2; /* and the pool's */
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    testing_peer_delay(peer, 0.1, 0);
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 1);
    cr_assert(le(uint, fake_stats(&world).connecting, 2));
    fake_world_end(&world);
}

Test(cases, VG7_when_the_cause_is_gone_all_is_as_before)
{
    static const enum testing_behaviour causes[] = {TESTING_REFUSE, TESTING_BLACK_HOLE, TESTING_SILENT,
        TESTING_ACCEPT_AND_CLOSE, TESTING_ACCEPT_AND_RESET, TESTING_NO_HOST};

    for (int i = 0; i < 6; i++) {
        struct fake_world world;
        cases_begin(&world);
        world.host.protocol = &fake_session;
        fake_world_open(&world);
        struct testing_peer *peer = fake_peer(&world, A, causes[i]);
        testing_peer_serve(peer, testing_echo, NULL);
        memset(crowd, 0, sizeof crowd);
        for (int k = 0; k < CROWD; k++)
            cases_wait(&world, &crowd[k], A);
        fake_run(&world, 30);
        testing_peer_behave(peer, TESTING_ACCEPT);
        fake_run(&world, 3 + 2 + 0.01); /* one connect time-out, one backoff */
        for (int k = 0; k < CROWD; k++) {
            cr_assert(eq(int, crowd[k].status, POOL_READY), "cause %d, user %d", i, k);
            pool_release(&crowd[k].lease, POOL_REUSE);
            fake_settle(&world);
        }
        fake_world_end(&world);
    }
}

Test(cases, XH2_a_refusing_server_sees_no_more_attempts_for_more_who_wait)
{
    struct fake_world world;

    cases_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    memset(crowd, 0, sizeof crowd);
    for (int k = 0; k < CROWD; k++)
        cases_wait(&world, &crowd[k], A);
    fake_run(&world, 30);
    cr_assert(le(uint, testing_peer_attempts(peer), 8 + 30 + 4)); /* the first together, then 1 to 2 s apart */
    fake_world_end(&world);
}
