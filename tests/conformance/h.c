/* h.c - REFERENCE's H, as far as it needs no heartbeat: the backoff after one was lost. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#include "tests/fakes/owner.h"

/* ---- H8 ---- */

static void measure(double draw, double times)
{
    static const double gaps[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_heartbeat;
    fake_owner_draw(&owner, draw);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 500);
    for (unsigned i = 0; i < sizeof gaps / sizeof *gaps; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), times * gaps[i], 1e-6), "gap %u", i);
    fake_owner_end(&owner);
}

Test(conformance, H8_its_backoff_doubles_from_1_to_60_times_0_7_to_1_3)
{
    measure(0, 0.7);
    measure(0.25, 0.85);
    measure(0.5, 1);
    measure(0x1.fffffffffffffp-1, 1.3);
}

/* ---- H11 ---- */

enum {
    CROWD = 180,
    WAVES = 9,
    TENTHS = 10,
    MOST = 36
};

static unsigned held[WAVES][TENTHS], waiting[WAVES];

static void count_wait(struct link *link, unsigned attempt, double delay)
{
    double middle = attempt < 7 ? 1u << (attempt - 1) : 60;
    int tenth = (int)((delay / middle - 0.7) / 0.06);

    (void)link;
    if (attempt > WAVES)
        return;
    cr_assert(ge(dbl, delay, 0.7 * middle - 1e-9));
    cr_assert(le(dbl, delay, 1.3 * middle + 1e-9));
    held[attempt - 1][tenth < TENTHS ? tenth : TENTHS - 1]++;
    waiting[attempt - 1]++;
}

static void meet_again(struct testing_peer **peers)
{
    for (unsigned i = 0; i < CROWD; i++) {
        testing_peer_behave(peers[i], TESTING_BLACK_HOLE);
        testing_peer_cut(peers[i], LINK_RESET);
    }
}

Test(conformance, H11_links_lost_together_come_back_spread_out)
{
    struct fake_owner owner;
    struct testing_peer *peers[CROWD];
    struct link *links[CROWD];
    char address[32];

    fake_owner_begin(&owner, TESTING_ACCEPT);
    link_options_init(&owner.options);
    owner.options.backoff = &backoff_heartbeat;
    owner.options.env = &owner.env;
    owner.options.reconnect = count_wait;
    for (unsigned i = 0; i < CROWD; i++) {
        snprintf(address, sizeof address, "10.1.0.%u:80", i + 1);
        peers[i] = testing_peer_add(owner.t, address, TESTING_ACCEPT);
        links[i] = link_new(owner.driver, address, &owner.options);
        link_start(links[i]);
    }
    fake_owner_run(&owner, 1);
    for (unsigned i = 0; i < CROWD; i++)
        cr_assert(eq(int, link_state(links[i]), LINK_READY));
    meet_again(peers);
    fake_owner_run(&owner, 500);
    for (unsigned wave = 0; wave < WAVES; wave++) {
        cr_assert(eq(uint, waiting[wave], CROWD));
        for (unsigned tenth = 0; tenth < TENTHS; tenth++)
            cr_assert(le(uint, held[wave][tenth], MOST), "wave %u, tenth %u", wave, tenth);
    }
    for (unsigned i = 0; i < CROWD; i++)
        link_free(links[i]);
    fake_owner_end(&owner);
}
