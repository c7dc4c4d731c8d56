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
