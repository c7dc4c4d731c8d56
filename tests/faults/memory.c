/* memory.c - allocations failing in turn: in each scenario the first, then the second, and so on; and all from there.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/faults/scenes.h"
#include "tests/faults/sweep.h"

#define COUNT(scene) +1
_Static_assert(SCENES(COUNT) > 60, "over 60 scenarios");

#define FAIL_IN_TURN(scene)                                                                                            \
    Test(faults_memory, scene)                                                                                         \
    {                                                                                                                  \
        sweep_memory(&scenario_##scene);                                                                               \
    }
SCENES(FAIL_IN_TURN)

/* What is kept up is tried again, but not without a pause: a pool without memory is a quiet one. */
Test(faults_memory, what_is_kept_up_without_memory_is_tried_again_four_times_a_second)
{
    struct fake_world world;
    uint64_t before;

    fake_world_begin(&world);
    fake_echo(&world, ADDRESS);
    world.host.min_links = 3;
    fake_world_open(&world);
    struct pool_host *host = pool_host(world.pool, ADDRESS);
    cr_assert(ne(ptr, host, NULL));
    testing_fail_allocation(world.t, 1, true);
    before = testing_allocations(world.t);
    fake_run(&world, 10);
    cr_assert(le(u64, testing_allocations(world.t) - before, 41));
    testing_fail_allocation(world.t, 0, false);
    fake_run(&world, 1.1);
    cr_assert(eq(uint, fake_stats(&world).idle, 3));
    pool_host_drop(host);
    fake_world_end(&world);
}
