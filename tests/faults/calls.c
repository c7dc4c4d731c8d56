/* calls.c - system calls failing in turn: in each scenario, for each call and each plausible errno, the first call,
 * then the second, and so on; recvmsg() and sendmsg() also come short. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

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
        bool met[PAIRS] = {false};                                                                                     \
        sweep_calls(&scenario_##scene, met);                                                                           \
    }
SCENES_OF_CALLS(FAIL_IN_TURN)

#define FAIL_ONCE(scene) sweep_first_calls(&scenario_##scene, met);

Test(faults_calls, each_pair_of_call_and_error_is_met)
{
    bool met[PAIRS] = {false};

    cr_assert(ge(uint, sweep_n_pairs, 40));
    cr_assert(le(uint, sweep_n_pairs, PAIRS));
    SCENES_OF_CALLS(FAIL_ONCE)
    for (unsigned i = 0; i < sweep_n_pairs; i++)
        cr_expect(met[i], "call %d, error %d is met by no scenario", (int)sweep_pairs[i].call, sweep_pairs[i].error);
}
