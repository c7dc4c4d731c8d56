/* calls.c - system calls failing in turn: in each scenario, for each call and each plausible errno, the first call,
 * then the second, and so on; recvmsg() and sendmsg() also come short. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/faults/scenes.h"
#include "tests/faults/sweep.h"

enum {
    PAIRS = 128
};

#define COUNT(scene) +1
_Static_assert(SCENES_OF_CALLS(COUNT) >= 15, "15 scenarios");

#define FAIL_IN_TURN(scene)                                                                                            \
    Test(faults_calls, scene)                                                                                          \
    {                                                                                                                  \
        struct sweep_seen seen[PAIRS] = {0};                                                                           \
        sweep_calls(&scenario_##scene, seen);                                                                          \
    }
SCENES_OF_CALLS(FAIL_IN_TURN)

#define FAIL_ONCE(scene) sweep_first_calls(&scenario_##scene, seen);

/* What fails is also told: a failure that is passed over in silence would be seen by nobody. */
Test(faults_calls, each_pair_of_call_and_error_is_met_and_told)
{
    struct sweep_seen seen[PAIRS] = {0};

    cr_assert(ge(uint, sweep_n_pairs, 40));
    cr_assert(le(uint, sweep_n_pairs, PAIRS));
    SCENES_OF_CALLS(FAIL_ONCE)
    for (unsigned i = 0; i < sweep_n_pairs; i++) {
        const struct sweep_pair *pair = &sweep_pairs[i];
        cr_expect(seen[i].met, "call %d, error %d is met by no scenario", (int)pair->call, pair->error);
        cr_expect(seen[i].told || pair->reason == LINK_NO_REASON, "call %d, error %d ends nothing with \"%s\"",
            (int)pair->call, pair->error, link_reason_text(pair->reason));
    }
}

/* Nobody holds the link, and its peer speaks: it is looked at, and that fails. */
Test(faults_calls, an_idle_link_that_cannot_be_looked_at_ends)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    fake_give_back(&user);
    testing_fail_call(world.t, TESTING_RECVMSG, 1, ECONNRESET, false);
    testing_peer_say(peer, "?", 1);
    fake_run(&world, 0.1);
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_RESET], 1));
    fake_world_end(&world);
}

/* A full backlog is no end: there is nothing to wait for but time. */
Test(faults_calls, a_unix_connect_that_is_to_come_again_comes_again)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_echo(&world, SOCKET);
    fake_world_open(&world);
    testing_fail_call(world.t, TESTING_CONNECT, 1, EAGAIN, false);
    fake_hold(&world, &user, SOCKET);
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_UNREACHABLE], 0));
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SOCKET), 1));
    fake_give_back(&user);
    fake_world_end(&world);
}
