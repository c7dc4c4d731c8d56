/* link.c - links on their own: what is refused and why, what their owner may do, and their figures. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/fakes/owner.h"

/* ---- options ---- */

static struct link_options fine(void)
{
    struct link_options options;

    link_options_init(&options);
    return options;
}

/* Refused by both, and the text names the option. */
static void expect_refusal(const struct link_options *options, const char *named)
{
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    char text[200] = "";

    cr_assert(eq(int, link_options_check(options, text, sizeof text), LINKPOOL_EINVAL), "%s", named);
    cr_assert(eq(ptr, strstr(text, named), text), "\"%s\" does not begin with %s", text, named);
    cr_assert(eq(int, link_options_check(options, NULL, 0), LINKPOOL_EINVAL));
    errno = 0;
    cr_assert(eq(ptr, link_new(driver, FAKE_ADDRESS, options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(eq(ptr, driver->owner, NULL));
    driver_free(driver);
    testing_free(t);
}

static void refuse_time(const char *named, size_t place)
{
    static const double bad[] = {0, -1, NAN, INFINITY, 10.1 * 365.25 * 86400};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct link_options options = fine();
        memcpy((char *)&options + place, &bad[i], sizeof bad[i]);
        expect_refusal(&options, named);
    }
}

Test(link, times_out_of_range_are_refused_by_name)
{
    refuse_time("connect_timeout", offsetof(struct link_options, connect_timeout));
    refuse_time("reset_timeout", offsetof(struct link_options, reset_timeout));
    refuse_time("drain_timeout", offsetof(struct link_options, drain_timeout));
}

Test(link, what_it_points_to_is_refused_by_name_when_it_cannot_be_used)
{
    struct link_options options = fine();
    struct transport no_open = transport_tcp, no_idle = transport_tcp, no_close = transport_tcp;
    struct protocol deaf = {.size = sizeof deaf, .flags = PROTOCOL_SHARED}, sizeless = {0};
    struct backoff_policy shrinking = backoff_edge;
    struct linkpool_env no_random = linkpool_env_system;

    no_open.open = NULL;
    no_idle.idle = NULL;
    no_close.close = NULL;
    const struct transport *transports[] = {NULL, &no_open, &no_idle, &no_close};
    for (size_t i = 0; i < 4; i++) {
        options.transport = transports[i];
        expect_refusal(&options, "transport");
    }
    options = fine();
    const struct protocol *protocols[] = {NULL, &deaf, &sizeless};
    for (size_t i = 0; i < 3; i++) {
        options.protocol = protocols[i];
        expect_refusal(&options, "protocol");
    }
    options = fine();
    options.backoff = NULL;
    expect_refusal(&options, "backoff");
    shrinking.factor = 0.5;
    options.backoff = &shrinking;
    expect_refusal(&options, "backoff: factor");
    options = fine();
    no_random.random = NULL;
    options.env = &no_random;
    expect_refusal(&options, "env");
    options = fine();
    options.local = "here";
    expect_refusal(&options, "local");
}

Test(link, the_defaults_are_those_of_the_manual)
{
    struct link_options options = fine();

    cr_assert(eq(int, link_options_check(&options, NULL, 0), 0));
    cr_assert(eq(sz, options.size, sizeof options));
    cr_assert(eq(ptr, (void *)options.transport, (void *)&transport_tcp));
    cr_assert(eq(ptr, (void *)options.protocol, (void *)&protocol_raw));
    cr_assert(eq(ptr, (void *)options.backoff, (void *)&backoff_default));
    cr_assert(eq(ptr, (void *)options.env, (void *)&linkpool_env_system));
    cr_assert(eq(dbl, options.connect_timeout, 3));
    cr_assert(eq(dbl, options.reset_timeout, 3));
    cr_assert(eq(dbl, options.drain_timeout, 30));
    cr_assert(not(options.fail_first));
}

Test(link, an_older_callers_shorter_options_are_filled_up)
{
    struct link_options options;
    size_t size = offsetof(struct link_options, connect_timeout);

    memset(&options, 0xff, sizeof options);
    link_options_init_sized(&options, size);
    cr_assert(eq(sz, options.size, size));
    cr_assert(ne(dbl, options.connect_timeout, 3)); /* not written: it is not there */
    cr_assert(eq(int, link_options_check(&options, NULL, 0), 0));
}

/* ---- addresses and drivers ---- */

Test(link, what_is_no_address_is_refused)
{
    static const char *const bad[] = {
        "", "db:5432", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "[::1]", "unix:", "db"};
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    struct link_options options = fine();
    char why[160];

    options.env = testing_env(t);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        cr_assert(eq(ptr, link_new(driver, bad[i], &options), NULL), "%s", bad[i]);
        cr_assert(eq(int, errno, EINVAL));
        cr_assert(eq(int, link_address_check(bad[i], why, sizeof why), LINKPOOL_EADDRESS));
    }
    cr_assert(eq(ptr, link_new(driver, NULL, &options), NULL));
    cr_assert(eq(ptr, link_new(NULL, FAKE_ADDRESS, &options), NULL));
    cr_assert(eq(sz, testing_blocks(t), 0));
    driver_free(driver);
    testing_free(t);
}

Test(link, the_driver_of_a_pool_is_busy_and_so_is_that_of_links)
{
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    struct link_options options = fine();
    struct pool_options pool_options;

    pool_options_init(&pool_options);
    options.env = pool_options.env = testing_env(t);
    struct pool *pool = pool_new_on(driver, &pool_options);
    errno = 0;
    cr_assert(eq(ptr, link_new(driver, FAKE_ADDRESS, &options), NULL));
    cr_assert(eq(int, errno, EBUSY));
    pool_free(pool);

    driver = testing_driver(t);
    struct link *link = link_new(driver, FAKE_ADDRESS, &options);
    cr_assert(ne(ptr, link, NULL));
    cr_assert(eq(ptr, pool_new_on(driver, &pool_options), NULL));
    link_free(link);
    pool = pool_new_on(driver, &pool_options); /* free again when the last link is gone */
    cr_assert(ne(ptr, pool, NULL));
    pool_free(pool);
    cr_assert(eq(sz, testing_blocks(t), 0));
    testing_free(t);
}

/* ---- memory ---- */

Test(link, without_memory_none_is_made_and_nothing_is_left)
{
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    struct link_options options = fine();
    struct link *link = NULL;
    unsigned failed = 0;

    options.env = testing_env(t);
    while (!link) {
        testing_fail_allocation(t, failed + 1, true);
        errno = 0;
        if ((link = link_new(driver, FAKE_ADDRESS, &options)))
            break;
        cr_assert(eq(int, errno, ENOMEM));
        cr_assert(eq(sz, testing_blocks(t), 0));
        cr_assert(eq(ptr, driver->owner, NULL));
        failed++;
    }
    cr_assert(ge(uint, failed, 3));
    testing_fail_allocation(t, 0, false);
    link_free(link);
    cr_assert(eq(sz, testing_blocks(t), 0));
    driver_free(driver);
    testing_free(t);
}

static bool live_through(unsigned nth)
{
    struct fake_owner owner;
    uint64_t before;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.protocol = &fake_hello;
    testing_peer_serve(owner.peer, fake_ack, NULL);
    fake_owner_open(&owner);
    before = testing_allocations(owner.t);
    testing_fail_allocation(owner.t, nth, false);
    link_start(owner.link);
    fake_owner_run(&owner, 2);
    testing_peer_cut(owner.peer, LINK_RESET);
    testing_peer_serve(owner.peer, testing_echo, NULL); /* no ACK: words are kept */
    fake_owner_run(&owner, 3);
    testing_peer_serve(owner.peer, fake_ack, NULL);
    fake_owner_run(&owner, 100);
    cr_assert(eq(int, link_state(owner.link), LINK_READY), "the %u-th allocation failed", nth);
    bool met = testing_allocations(owner.t) - before >= nth;
    fake_owner_end(&owner);
    return met;
}

Test(link, it_lives_through_any_allocation_that_fails)
{
    unsigned nth = 1;

    while (live_through(nth))
        nth++;
    cr_assert(lt(uint, 1, nth));
}

/* ---- the owner ---- */

Test(link, freeing_none_is_nothing)
{
    link_free(NULL);
}

static struct link *other;
static char asks;

static void turn_on_the_other(struct fake_owner *owner, const struct fake_told *told)
{
    (void)owner;
    if (strcmp(told->what, "connected") != 0 || !other)
        return;
    if (asks == 'p') {
        link_stop(other);
        return;
    }
    link_free(other);
    other = NULL;
}

/* Both are to be told something at the end of the same turn. */
static void meet_another(char what, bool first)
{
    struct fake_owner owner;
    struct link_options quiet;
    const struct link_options *options[2] = {&quiet, &quiet};
    struct link *links[2];

    asks = what;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    quiet = owner.options;
    quiet.connecting = NULL;
    quiet.connected = NULL;
    quiet.disconnected = NULL;
    quiet.reconnect = NULL;
    quiet.stopped = NULL;
    owner.then = turn_on_the_other;
    options[first ? 0 : 1] = &owner.options;
    for (int i = 0; i < 2; i++) {
        links[i] = link_new(owner.driver, FAKE_ADDRESS, options[i]);
        link_start(links[i]);
    }
    owner.link = links[first ? 0 : 1];
    other = links[first ? 1 : 0];
    fake_owner_run(&owner, 100);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 1));
    if (what == 'p')
        cr_assert(eq(int, link_state(other), LINK_IDLE));
    link_free(other);
    fake_owner_end(&owner);
}

Test(link, a_callback_of_one_may_stop_and_free_another)
{
    meet_another('p', true);
    meet_another('p', false);
    meet_another('f', true);
    meet_another('f', false);
}

Test(link, what_is_stopped_and_started_before_anybody_was_told_is_told_in_order)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    fake_owner_forget(&owner);
    for (int i = 0; i < 50; i++) {
        link_stop(owner.link);
        link_start(owner.link);
    }
    fake_owner_run(&owner, 1);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "disconnected stopped connecting connected"));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 1));
    fake_owner_end(&owner);
}

Test(link, callbacks_that_nobody_gives_are_not_called)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    link_options_init(&owner.options);
    owner.options.backoff = &owner.backoff;
    owner.options.env = &owner.env;
    owner.backoff.max_attempts = 3;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 5);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_until(&owner, LINK_OFFLINE, 20);
    cr_assert(eq(ptr, link_data(owner.link), NULL));
    fake_owner_end(&owner);
}

Test(link, it_is_proven_after_stable_after_and_until_then_failures_add_up)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.backoff = &backoff_default; /* stable after 10 s */
    fake_owner_start(&owner);
    for (unsigned i = 1; i <= 5; i++) {
        fake_owner_until(&owner, LINK_READY, 3);
        fake_owner_run(&owner, 9.9);
        testing_peer_cut(owner.peer, LINK_RESET);
        fake_owner_settle(&owner);
        cr_assert(eq(uint, fake_link_stats(owner.link).attempt, i));
    }
    fake_owner_until(&owner, LINK_READY, 3);
    fake_owner_run(&owner, 9.9);
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 5));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 0));
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_settle(&owner);
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 1));
    fake_owner_end(&owner);
}

/* ---- figures ---- */

Test(link, figures_follow_the_connection)
{
    struct fake_owner owner;
    struct link_stats stats;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_open(&owner);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(int, stats.state, LINK_IDLE));
    cr_assert(eq(uint, stats.channels + stats.room, 0));
    cr_assert(eq(u64, stats.uses, 0));
    cr_assert(eq(dbl, stats.age, 0));
    link_start(owner.link);
    fake_owner_run(&owner, 7);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(uint, stats.channels, 1));
    cr_assert(eq(uint, stats.room, 1));
    cr_assert(eq(u64, stats.uses, 1));
    cr_assert(epsilon_eq(dbl, stats.age, 7, 1e-9));
    struct link *second = link_new(owner.driver, FAKE_ADDRESS, &owner.options);
    cr_assert(ne(u64, fake_link_stats(second).id, stats.id));
    cr_assert(ne(u64, stats.id, 0));
    link_free(second);
    link_stop(owner.link);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(uint, stats.channels, 1)); /* its owner has still to be told */
    fake_owner_settle(&owner);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(uint, stats.channels + stats.room, 0));
    cr_assert(eq(dbl, stats.age, 0));
    fake_owner_end(&owner);
}

Test(link, an_older_callers_shorter_figures_are_not_overrun)
{
    struct fake_owner owner;
    struct link_stats stats;

    memset(&stats, 0x55, sizeof stats);
    struct link_stats untouched = stats;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_open(&owner);
    link_stats(owner.link, &stats, offsetof(struct link_stats, attempt));
    cr_assert(eq(int, stats.state, LINK_IDLE));
    cr_assert(eq(uint, stats.attempt, untouched.attempt));
    cr_assert(eq(u64, stats.stale_events, untouched.stale_events));
    fake_owner_end(&owner);
}

Test(link, the_last_reason_is_kept_until_the_next_end)
{
    struct fake_owner owner;
    int system_errno = -1;
    const char *text = NULL;

    fake_owner_begin(&owner, TESTING_REFUSE);
    fake_owner_open(&owner);
    cr_assert(eq(int, link_last_reason(owner.link, &system_errno, &text), LINK_NO_REASON));
    cr_assert(eq(int, system_errno, 0));
    cr_assert(eq(str, (char *)text, ""));
    link_start(owner.link);
    fake_owner_run(&owner, 0.5);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 2);
    cr_assert(eq(int, link_last_reason(owner.link, &system_errno, NULL), LINK_REFUSED));
    cr_assert(eq(int, system_errno, ECONNREFUSED));
    link_stop(owner.link);
    cr_assert(eq(int, link_last_reason(owner.link, &system_errno, NULL), LINK_STOPPED));
    cr_assert(eq(int, system_errno, 0));
    fake_owner_end(&owner);
}

Test(link, every_reason_has_a_phrase_of_its_own)
{
    for (int i = 0; i < LINK_REASONS; i++) {
        const char *text = link_reason_text((enum link_reason)i);
        cr_assert(ne(str, (char *)text, ""));
        cr_assert(ne(str, (char *)text, "unknown"));
        for (int k = 0; k < i; k++)
            cr_assert(ne(str, (char *)text, (char *)link_reason_text((enum link_reason)k)));
    }
    cr_assert(eq(str, (char *)link_reason_text(LINK_REASONS), "unknown"));
}

Test(link, an_observer_that_knows_no_transition_is_not_called)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.observer.size = offsetof(struct pool_observer, transition);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    cr_assert(eq(uint, owner.n_records, 0));
    fake_owner_end(&owner);
}

Test(link, early_alarms_and_shuffled_descriptors_change_nothing)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fake_owner owner;
        fake_owner_begin(&owner, TESTING_REFUSE);
        owner.backoff.jitter = BACKOFF_NONE;
        testing_early_alarms(owner.t, true);
        testing_shuffle(owner.t, true);
        for (uint64_t i = 0; i < seed; i++)
            testing_random(owner.t);
        fake_owner_start(&owner);
        fake_owner_run(&owner, 14.5);
        cr_assert(eq(uint, testing_peer_attempts(owner.peer), 4));
        for (unsigned i = 0; i < 3; i++)
            cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), 1u << i, 1e-9));
        fake_owner_end(&owner);
    }
}

/* ---- a life of chance ---- */

enum {
    LIVES = 3
};

static void act(struct fake_owner *owner, struct link **links)
{
    static const enum testing_behaviour ways[] = {TESTING_ACCEPT, TESTING_ACCEPT, TESTING_REFUSE, TESTING_BLACK_HOLE,
        TESTING_ACCEPT_AND_CLOSE, TESTING_ACCEPT_AND_RESET, TESTING_UNREACHABLE, TESTING_SILENT};
    struct link **link = &links[testing_random(owner->t) % LIVES];

    switch (testing_random(owner->t) % 8) {
    case 0:
    case 1:
        link_start(*link);
        break;
    case 2:
        link_stop(*link);
        break;
    case 3:
        link_free(*link);
        *link = link_new(owner->driver, FAKE_ADDRESS, &owner->options);
        break;
    case 4:
        testing_peer_cut(owner->peer, testing_random(owner->t) % 2 ? LINK_RESET : LINK_CLOSED_BY_PEER);
        break;
    case 5:
        if (owner->hears) /* an end behind bytes that nobody reads is not seen */
            testing_peer_say(owner->peer, "unasked", 7);
        break;
    default:
        testing_peer_behave(owner->peer, ways[testing_random(owner->t) % 8]);
        break;
    }
    if (testing_random(owner->t) % 3)
        fake_owner_run(owner, (double)(testing_random(owner->t) % 4000) / 1000);
}

static unsigned sockets_of(struct link **links)
{
    unsigned n = 0;

    for (int i = 0; i < LIVES; i++)
        n += link_state(links[i]) >= LINK_CONNECTING && link_state(links[i]) <= LINK_DRAINING;
    return n;
}

static void live(unsigned seed, const struct protocol *protocol)
{
    struct fake_owner owner;
    struct link *links[LIVES];

    fake_owner_begin(&owner, TESTING_ACCEPT);
    for (unsigned i = 0; i < seed; i++)
        testing_random(owner.t);
    testing_early_alarms(owner.t, seed % 2);
    testing_shuffle(owner.t, seed % 3 == 0);
    testing_peer_delay(owner.peer, 0.01 * (seed % 5), 0.02 * (seed % 3));
    testing_peer_serve(owner.peer, fake_ack, NULL);
    owner.options.protocol = protocol;
    owner.hears = seed % 2;
    owner.backoff.max_attempts = seed % 7;
    for (int i = 0; i < LIVES; i++)
        links[i] = link_new(owner.driver, FAKE_ADDRESS, &owner.options);
    for (int i = 0; i < 60; i++) {
        act(&owner, links);
        cr_assert(eq(uint, testing_open_descriptors(owner.t), sockets_of(links)), "seed %u", seed);
        owner.n_heard = 0;
    }
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 200);
    cr_assert(eq(uint, testing_peer_open(owner.peer), sockets_of(links)), "seed %u", seed);
    for (int i = 0; i < LIVES; i++) {
        enum link_state state = link_state(links[i]);
        cr_assert(state == LINK_READY || state == LINK_IDLE || state == LINK_OFFLINE, "seed %u: %s", seed,
            link_state_name(state));
        link_free(links[i]);
    }
    fake_owner_end(&owner);
}

Test(link, whatever_happens_each_link_has_one_socket_at_most_and_settles)
{
    for (unsigned seed = 0; seed < 150; seed++) {
        live(seed, &fake_hello);
        live(seed, &protocol_raw);
    }
}
