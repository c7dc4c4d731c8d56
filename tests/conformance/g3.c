/* g3.c - REFERENCE's G3: gRPC's connection backoff, on a link on its own. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/owner.h"

static void measure_preset(double draw, double times)
{
    static const double gaps[] = {1, 1.6, 2.56, 4.096, 6.5536};
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_grpc;
    fake_owner_draw(&owner, draw);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 11);
    cr_assert(eq(dbl, testing_peer_attempt_at(owner.peer, 0), 1000)); /* the first at once */
    if (draw == 0.5)
        cr_assert(eq(uint, testing_peer_attempts(owner.peer), 5));
    fake_owner_run(&owner, 20);
    for (unsigned i = 0; i < sizeof gaps / sizeof *gaps; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), times * gaps[i], 1e-9), "gap %u", i);
    fake_owner_run(&owner, 2000);
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 12), times * 120, 1e-6)); /* 1.6^12 is over the cap */
    fake_owner_end(&owner);
}

Test(conformance, G3_preset_waits_1_times_1_6_within_a_fifth_up_to_120)
{
    measure_preset(0.5, 1);
    measure_preset(0, 0.8);
    measure_preset(0x1.fffffffffffffp-1, 1.2);
}

Test(conformance, G3_custom_backoff)
{
    static const double at[] = {0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5};
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.backoff = backoff_grpc;
    owner.backoff.base = 0.1;
    owner.backoff.factor = 2;
    owner.backoff.jitter = BACKOFF_NONE;
    owner.backoff.cap = 1;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 11);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 14));
    for (unsigned i = 0; i < 14; i++)
        cr_assert(epsilon_eq(dbl, testing_peer_attempt_at(owner.peer, i), 1000 + at[i], 1e-9), "attempt %u", i);
    fake_owner_end(&owner);
}
