/* g.c - REFERENCE's G: what gRPC's client channel does, on a target of a pool. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char *const backends[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"};

static void use_once(struct fake_world *world, struct fake_user *user, const char *target)
{
    fake_hold(world, user, target);
    fake_exchange(world, user);
    fake_give_back(user);
}

/* ---- G1 ---- */

Test(conformance, G1_nothing_connects_before_the_first_use)
{
    struct fake_world world;
    struct fake_user user = {0};

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, backends[0]);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, backends, 1);

    fake_run(&world, 0.2);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(peer), 0));

    use_once(&world, &user, "db");
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    for (int i = 0; i < 20; i++)
        use_once(&world, &user, "db");
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(u64, testing_peer_bytes(peer), 21));
    fake_world_end(&world);
}

Test(conformance, G1_an_explicit_connect_without_use_makes_one)
{
    const struct pool_picker *const pickers[] = {&pool_pick_first, &pool_round_robin};

    for (size_t i = 0; i < 2; i++) {
        struct fake_world world;
        fake_world_begin(&world);
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, backends[0]);
        struct pool_target *target = fake_target(&world, "db", pickers[i], backends, 1);
        cr_assert(eq(int, pool_target_start(target), 0));
        fake_run(&world, 0.2);
        cr_assert(eq(uint, testing_peer_accepted(peer), 1));
        cr_assert(eq(int, pool_target_state(target), LINK_READY));
        fake_world_end(&world);
    }
}

/* ---- G2 ---- */

static void use_30_times(const struct pool_picker *picker, unsigned connections[3], uint64_t uses[3])
{
    struct testing_peer *peers[3];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(&world, backends[i]);
    struct pool_target *target = fake_target(&world, "db", picker, backends, 3);
    pool_target_start(target);
    fake_run(&world, 0.2); /* all that shall be READY are */
    for (int i = 0; i < 30; i++)
        use_once(&world, &user, "db");
    for (size_t i = 0; i < 3; i++) {
        connections[i] = testing_peer_accepted(peers[i]);
        uses[i] = fake_host_stats(pool_target_host(target, i)).uses;
    }
    fake_world_end(&world);
}

Test(conformance, G2_pick_first_connects_to_the_first_alone)
{
    unsigned connections[3];
    uint64_t uses[3];

    use_30_times(&pool_pick_first, connections, uses);
    cr_assert(eq(uint, connections[0], 1));
    cr_assert(eq(uint, connections[1], 0));
    cr_assert(eq(uint, connections[2], 0));
    cr_assert(eq(u64, uses[0], 30));
}

Test(conformance, G2_round_robin_connects_once_to_each_and_shares_the_uses)
{
    unsigned connections[3];
    uint64_t uses[3];

    use_30_times(&pool_round_robin, connections, uses);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(uint, connections[i], 1));
        cr_assert(eq(u64, uses[i], 10));
    }
}

Test(conformance, G2_the_first_use_connects_to_each_under_round_robin)
{
    struct testing_peer *peers[3];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(&world, backends[i]);
    fake_target(&world, "db", &pool_round_robin, backends, 3);
    for (int i = 0; i < 30; i++)
        use_once(&world, &user, "db");
    for (int i = 0; i < 3; i++)
        cr_assert(eq(uint, testing_peer_accepted(peers[i]), 1));
    fake_world_end(&world);
}

/* ---- G4 ---- */

struct reader {
    struct fake_world *world;
    ssize_t got;
    double at;
};

static void on_readable(struct channel *channel)
{
    struct reader *reader = channel_data(channel);
    char bytes[8];

    reader->got = channel_read(channel, bytes, sizeof bytes);
    reader->at = testing_now(reader->world->t);
    channel_want(channel, 0); /* it ends only once */
}

static const struct channel_events reading = {.readable = on_readable};

static void stop_server(struct testing_peer *peer)
{
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
}

Test(conformance, G4_a_holder_reads_the_end_in_that_turn_and_the_next_use_reconnects)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, backends[0]);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, backends, 1);
    struct reader reader = {.world = &world, .got = -1};
    use_once(&world, &user, "db");
    testing_peer_serve(peer, NULL, NULL); /* the next request is in flight for good */
    fake_hold(&world, &user, "db");
    channel_set_data(user.lease.channel, &reader);
    cr_assert(eq(int, channel_watch(user.lease.channel, &reading, LINKPOOL_READ), 0));
    fake_send(&user, "?");
    fake_run(&world, 0.5);
    cr_assert(eq(long, reader.got, -1));

    double stopped = testing_now(world.t);
    stop_server(peer);
    fake_settle(&world);
    cr_assert(eq(long, reader.got, 0));
    cr_assert(eq(dbl, reader.at, stopped));
    cr_assert(eq(int, user.lease.fate, POOL_SENT_NO_ANSWER));
    pool_release(&user.lease, POOL_DISCARD);
    fake_settle(&world);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));

    testing_peer_behave(peer, TESTING_ACCEPT);
    testing_peer_serve(peer, testing_echo, NULL);
    use_once(&world, &user, "db");
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(conformance, G4_calls_in_flight_are_told_in_that_turn)
{
    struct fake_user first = {0}, second = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.protocol = &fake_shared;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, backends[0]);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, backends, 1);
    fake_hold(&world, &first, "db");
    fake_hold(&world, &second, "db");
    cr_assert(eq(int, channel_send(first.lease.channel, "x", 1), 0));
    fake_run(&world, 0.5);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));

    double stopped = testing_now(world.t);
    stop_server(peer);
    fake_settle(&world);
    cr_assert(eq(uint, first.closed, 1));
    cr_assert(eq(uint, second.closed, 1));
    cr_assert(eq(dbl, second.told_at, stopped));
    cr_assert(eq(int, first.lease.status, LINKPOOL_ELOST));
    cr_assert(eq(int, first.lease.reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));

    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_hold(&world, &first, "db");
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

/* ---- G5 ---- */

Test(conformance, G5_fails_fast_in_backoff_unless_told_to_wait)
{
    struct fake_user first = {0}, hasty = {0}, patient = {.lease.flags = POOL_WAIT_FOR_READY};
    struct fake_world world;

    fake_world_begin(&world);
    world.backoff = backoff_grpc;
    world.backoff.base = 0.3;
    world.backoff.jitter = BACKOFF_NONE;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, backends[0], TESTING_REFUSE);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, backends, 1);
    cr_assert(eq(int, fake_ask(&world, &first, "db"), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(int, first.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));

    cr_assert(eq(int, fake_ask(&world, &hasty, "db"), LINKPOOL_EUNAVAILABLE)); /* before any time has passed */
    cr_assert(eq(int, hasty.lease.reason, LINK_REFUSED));
    cr_assert(eq(int, fake_ask(&world, &patient, "db"), POOL_PENDING));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1);
    cr_assert(eq(uint, hasty.done, 0));
    cr_assert(eq(uint, patient.done, 1));
    cr_assert(eq(int, patient.status, POOL_READY));
    cr_assert(epsilon_eq(dbl, patient.told_at - first.told_at, 0.3, 1e-6));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_world_end(&world);
}

/* ---- G7 ---- */

Test(conformance, G7_a_quiet_link_is_closed_and_the_next_use_opens_another)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.idle_timeout = 30;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, backends[0]);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, backends, 1);
    use_once(&world, &user, "db");
    fake_run(&world, 29.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 1));

    fake_run(&world, 100); /* and it stays so */
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    use_once(&world, &user, "db");
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

/* ---- G8 ---- */

struct states {
    enum link_state seen[16];
    unsigned n;
};

static void on_target(void *data, const struct pool_target *target, enum link_state from, enum link_state to)
{
    struct states *states = data;

    cr_assert(eq(str, (char *)pool_target_name(target), "db"));
    cr_assert(eq(int, from, states->n ? states->seen[states->n - 1] : LINK_IDLE));
    cr_assert(lt(uint, states->n, 16));
    states->seen[states->n++] = to;
}

Test(conformance, G8_the_state_of_the_whole_target_is_told)
{
    /* clang-format off */
    static const enum link_state expected[] = {
        LINK_CONNECTING, LINK_READY,    /* the first use */
        LINK_IDLE,                      /* it falls quiet */
        LINK_CONNECTING,                /* nobody listens any more: one host fails, the next is tried, */
        LINK_BACKOFF,                   /* and fails: transient failure, whatever is tried, */
        LINK_READY,                     /* until one is */
        LINK_CLOSED,                    /* shutdown */
    };
    /* clang-format on */
    const unsigned n = sizeof expected / sizeof *expected;
    struct fake_user user = {0}, patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct states states = {0};
    struct pool_observer observer = {.size = sizeof observer, .target = on_target, .data = &states};
    struct testing_peer *peers[2];
    struct fake_world world;

    fake_world_begin(&world);
    world.options.observer = &observer;
    fake_world_open(&world);
    for (int i = 0; i < 2; i++)
        peers[i] = fake_echo(&world, backends[i]);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, backends, 2);
    use_once(&world, &user, "db");
    fake_run(&world, 56);
    for (int i = 0; i < 2; i++)
        testing_peer_behave(peers[i], TESTING_REFUSE);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    fake_run(&world, 10); /* nobody asks: the hosts' verdicts are forgotten, the target's is not */
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    cr_assert(eq(int, fake_ask(&world, &patient, "db"), POOL_PENDING));
    fake_run(&world, 1);
    testing_peer_behave(peers[1], TESTING_ACCEPT);
    fake_run(&world, 10);
    cr_assert(eq(int, patient.status, POOL_READY));
    fake_give_back(&patient);
    cr_assert(eq(int, pool_target_drain(target, 1, NULL, NULL), 0));
    fake_settle(&world);

    cr_assert(eq(uint, states.n, n));
    for (unsigned i = 0; i < n; i++)
        cr_assert(eq(int, states.seen[i], expected[i], "step %u", i));
    fake_world_end(&world);
}
