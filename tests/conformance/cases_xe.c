/* cases_xe.c - the cases XE6 to XE14: double release, foreign leases, figures that only grow, bounds that are true. */
#include "tests/conformance/cases.h"

Test(cases, XE6_a_second_release_lends_no_link_twice)
{
    struct fake_world world;
    struct fake_user users[11] = {0};

    cases_peer(&world, 10);
    cases_ask(&world, users, 10, A);
    fake_settle(&world);
    fake_give_back(&users[0]);
    cr_assert(eq(int, pool_release(&users[0].lease, POOL_REUSE), LINKPOOL_ESTATE));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(uint, fake_stats(&world).leased, 9));
    fake_hold(&world, &users[0], A);
    cr_assert(eq(int, fake_ask(&world, &users[10], A), POOL_PENDING)); /* the eleventh waits */
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).leased, 10));
    fake_world_end(&world);
}

Test(cases, XE8_a_second_release_does_not_touch_the_next_holder)
{
    struct fake_world world;
    struct fake_user first = {0}, second = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &first, A);
    fake_give_back(&first);
    fake_hold(&world, &second, A);
    for (int i = 0; i < 2; i++)
        cr_assert(eq(int, pool_release(&first.lease, i ? POOL_DISCARD : POOL_REUSE), LINKPOOL_ESTATE));
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    fake_exchange(&world, &second);
    fake_give_back(&second);
    fake_world_end(&world);
}

Test(cases, XE9_a_lease_that_was_never_asked_for_is_refused)
{
    struct fake_world world;
    struct pool_lease foreign = {0};
    struct fake_user user = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &user, A);
    cr_assert(eq(int, pool_release(&foreign, POOL_REUSE), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_cancel(&foreign), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_release(&user.lease, (enum pool_disposition)7), LINKPOOL_EINVAL));
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    fake_give_back(&user);
    fake_world_end(&world);
}

#define GROWS(member) cr_assert(ge(u64, now.member, before.member), #member)

static void expect_growth(struct pool_stats before, struct pool_stats now)
{
    GROWS(acquired_ready);
    GROWS(acquired_waited);
    GROWS(failed_fast);
    GROWS(timed_out);
    GROWS(full);
    GROWS(cancelled);
    GROWS(opened);
    GROWS(reused);
    GROWS(peeked);
    for (int i = 0; i < LINK_REASONS; i++)
        GROWS(ends[i]);
    for (int i = 0; i < 32; i++)
        GROWS(wait_histogram[i]);
    cr_assert(le(uint, now.links, 4));
    cr_assert(le(uint, now.leased + now.idle + now.connecting, now.links));
    cr_assert(le(uint, now.waiting, 10));
}

Test(cases, XE10_figures_never_fall_and_never_wrap)
{
    struct fake_world world;
    struct fake_user users[10] = {0};

    struct testing_peer *peer = cases_peer(&world, 4);
    for (int i = 0; i < 3000; i++) {
        struct pool_stats before = fake_stats(&world);
        struct fake_user *user = &users[testing_random(world.t) % 10];
        if (testing_random(world.t) % 20 == 0)
            testing_peer_cut(peer, LINK_RESET);
        if (user->lease.channel)
            pool_release(&user->lease, testing_random(world.t) % 4 ? POOL_REUSE : POOL_DISCARD);
        else if (pool_cancel(&user->lease))
            fake_ask(&world, user, A);
        fake_run(&world, 0.01);
        expect_growth(before, fake_stats(&world));
    }
    fake_world_end(&world);
}

static struct fake_world *the_world;
static unsigned depth, most_links;

/* Asks for more from within each outcome. */
static void ask_more(struct pool_lease *lease)
{
    static struct fake_user more[40];
    static unsigned n;
    struct fake_user *user = lease->data;

    user->done++;
    user->status = lease->status;
    depth = n;
    for (int i = 0; i < 2 && n < 40; i++, n++) {
        fake_ask(the_world, &more[n], A);
        if (more[n].status == POOL_PENDING)
            more[n].lease.done = ask_more;
    }
    unsigned links = fake_stats(the_world).links;
    most_links = links > most_links ? links : most_links;
    if (lease->channel)
        pool_release(lease, n % 3 ? POOL_REUSE : POOL_DISCARD);
}

Test(cases, XE12_asking_from_within_callbacks_passes_no_bound)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_peer(&world, 3);
    the_world = &world;
    fake_ask(&world, &user, A);
    user.lease.done = ask_more;
    for (int i = 0; i < 1000; i++) {
        fake_run(&world, 0.01);
        cr_assert(le(uint, fake_stats(&world).links, 3));
    }
    cr_assert(eq(uint, depth, 40));
    cr_assert(le(uint, most_links, 3));
    fake_world_end(&world);
}

struct model {
    unsigned held, idle;
    uint64_t ready, opened, full, cancelled, discarded;
};

/* Over the bound one waits, the next is refused, and the first leaves the line again. */
static void meet_the_bound(struct fake_world *world, struct fake_user *user, struct model *model)
{
    struct fake_user over = {0};

    cr_assert(eq(int, fake_ask(world, user, A), POOL_PENDING));
    cr_assert(eq(int, fake_ask(world, &over, A), LINKPOOL_EFULL));
    cr_assert(eq(int, pool_cancel(&user->lease), 0));
    model->full++;
    model->cancelled++;
}

static void model_step(struct fake_world *world, struct fake_user *user, struct model *model)
{
    bool discards = testing_random(world->t) % 64 == 0;

    if (user->lease.channel) {
        cr_assert(eq(int, pool_release(&user->lease, discards ? POOL_DISCARD : POOL_REUSE), 0));
        model->held--;
        model->idle += !discards;
        model->discarded += discards;
    } else if (model->idle) { /* it is had at once */
        cr_assert(eq(int, fake_ask(world, user, A), POOL_READY));
        model->held++;
        model->idle--;
        model->ready++;
    } else if (model->held < 32) {
        cr_assert(eq(int, fake_ask(world, user, A), POOL_PENDING));
        fake_settle(world);
        cr_assert(eq(int, user->status, POOL_READY));
        model->held++;
        model->opened++;
    } else {
        meet_the_bound(world, user, model);
    }
}

static void expect_model(const struct fake_world *world, const struct model *model)
{
    struct pool_stats stats = fake_stats(world);

    cr_assert(eq(uint, stats.leased, model->held));
    cr_assert(eq(uint, stats.idle, model->idle));
    cr_assert(eq(uint, stats.links, model->held + model->idle));
    cr_assert(eq(uint, stats.waiting, 0));
    cr_assert(eq(u64, stats.acquired_ready, model->ready));
    cr_assert(eq(u64, stats.acquired_waited, model->opened));
    cr_assert(eq(u64, stats.opened, model->opened));
    cr_assert(eq(u64, stats.reused, model->ready)); /* who waits has a new one */
    cr_assert(eq(u64, stats.full, model->full));
    cr_assert(eq(u64, stats.cancelled, model->cancelled));
    cr_assert(eq(u64, stats.ends[LINK_DISCARDED], model->discarded));
}

Test(cases, XE13_a_million_steps_leave_the_figures_as_a_model_has_them)
{
    static struct fake_user users[64];
    struct model model = {0};
    struct fake_world world;

    cases_begin(&world);
    world.host.max_links = 32;
    world.options.max_line = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    for (unsigned i = 1; i <= 1000000; i++) {
        model_step(&world, &users[testing_random(world.t) % 64], &model);
        if (i % 1000 == 0)
            expect_model(&world, &model);
    }
    cr_assert(lt(u64, 100, model.full));
    cr_assert(lt(u64, 100, model.discarded));
    fake_world_end(&world);
}

Test(cases, XE14_the_pools_bound_holds_over_more_hosts_than_it_has_links)
{
    static struct fake_user users[50];
    struct fake_world world;
    char address[32];

    cases_begin(&world);
    world.options.max_links = 3;
    fake_world_open(&world);
    for (int i = 0; i < 50; i++) {
        snprintf(address, sizeof address, "10.0.1.%d:80", i + 1);
        fake_echo(&world, address);
        fake_ask(&world, &users[i], address);
    }
    for (int i = 0; i < 50; i++) {
        fake_run(&world, 0.01);
        cr_assert(le(uint, testing_open_descriptors(world.t), 3));
        for (int k = 0; k < 50; k++)
            if (users[k].lease.channel)
                fake_give_back(&users[k]);
    }
    fake_settle(&world);
    cr_assert(eq(uint, cases_count(users, 50, POOL_READY), 50));
    fake_world_end(&world);
}
