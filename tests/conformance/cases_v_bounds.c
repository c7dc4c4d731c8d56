/* cases_v_bounds.c - the cases VD1 to VD10, VE9 and VF3 to VF5: bounds of memory and descriptors, texts of addresses.
 */
#include "tests/conformance/cases.h"

#include <limits.h>

#include "linkpool/transport.h"

Test(cases, VD1_what_is_not_read_or_not_taken_holds_no_memory)
{
    static char bytes[65536];
    struct fake_world world;
    struct fake_user user = {0};
    struct iovec part = {bytes, sizeof bytes};

    struct testing_peer *peer = cases_peer(&world, 1);
    fake_hold(&world, &user, A);
    size_t before = testing_bytes(world.t);
    for (int i = 0; i < 100; i++)
        testing_peer_say(peer, bytes, sizeof bytes); /* and nobody reads */
    fake_run(&world, 1);
    cr_assert(eq(sz, testing_bytes(world.t), before));
    cr_assert(eq(long, channel_read(user.lease.channel, bytes, 1), 1));
    cr_assert(eq(sz, testing_bytes(world.t), before));
    testing_peer_window(peer, 0); /* the mirror: the peer reads nothing, and we feel it */
    ssize_t sent, total = 0;
    while ((sent = channel_writev(user.lease.channel, &part, 1)) > 0)
        total += sent;
    cr_assert(eq(long, sent, LINKPOOL_EAGAIN));
    cr_assert(le(long, total, 65536));
    cr_assert(eq(sz, testing_bytes(world.t), before));
    fake_world_end(&world);
}

Test(cases, VD2_calls_that_fail_one_by_one_leave_nothing_and_spoil_nothing)
{
    static const struct {
        enum testing_call call;
        int error;
    } faults[] = {{TESTING_SOCKET, EMFILE}, {TESTING_SOCKET, ENFILE}, {TESTING_SOCKET, ENOBUFS},
        {TESTING_CONNECT, EADDRNOTAVAIL}, {TESTING_CONNECT, ENETUNREACH}, {TESTING_SETSOCKOPT, EINVAL},
        {TESTING_GETSOCKOPT, EBADF}};

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct fake_world world;
        struct fake_user held = {0}, user = {0}, again = {0};
        cases_peer(&world, 4);
        fake_hold(&world, &held, A);
        unsigned open = testing_open_descriptors(world.t);
        testing_fail_call(world.t, faults[i].call, 1, faults[i].error, true);
        fake_ask(&world, &user, A);
        fake_run(&world, 6);
        cr_assert(ne(int, user.status, POOL_PENDING));
        if (user.status != POOL_READY)
            cr_assert(eq(uint, testing_open_descriptors(world.t), open));
        fake_exchange(&world, &held); /* what there was goes on */
        testing_fail_call(world.t, faults[i].call, 0, 0, false);
        fake_ask(&world, &again, A);
        fake_run(&world, 4);
        cr_assert(eq(int, again.status, POOL_READY), "fault %zu", i); /* by itself, though nobody was told to retry */
        fake_world_end(&world);
    }
}

Test(cases, VD2_at_the_limit_of_descriptors_it_fails_and_recovers)
{
    struct fake_world world;
    struct fake_user users[12] = {0};

    cases_peer(&world, 64);
    testing_limit_descriptors(world.t, 8);
    for (int i = 0; i < 12; i++)
        fake_ask(&world, &users[i], A);
    fake_run(&world, 4.9);
    cr_assert(eq(uint, cases_count(users, 12, POOL_READY), 8));
    testing_limit_descriptors(world.t, UINT_MAX);
    fake_run(&world, 6);
    cr_assert(eq(uint, cases_count(users, 12, POOL_PENDING), 0));
    struct fake_user late = {0};
    fake_hold(&world, &late, A);
    fake_world_end(&world);
}

Test(cases, VD6_each_bound_is_reached_exactly_and_a_link_costs_the_same_always)
{
    static struct fake_user users[300];
    struct fake_world world;
    char address[32];
    size_t at[3];

    cases_begin(&world);
    world.host.max_links = 200;
    world.options.max_line = 250;
    world.options.max_hosts = 3;
    fake_world_open(&world);
    fake_echo(&world, A);
    for (int i = 0; i < 300; i++)
        fake_ask(&world, &users[i], A);
    cr_assert(eq(uint, fake_stats(&world).waiting, 250));
    cr_assert(eq(uint, cases_count(users, 300, LINKPOOL_EFULL), 50));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).links, 200));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 200));
    for (int i = 1; i < 4; i++) {
        snprintf(address, sizeof address, "10.0.1.%d:80", i);
        cr_assert(eq(int, pool_host(world.pool, address) != NULL, i < 3), "%s", address);
    }
    fake_world_end(&world);
    for (unsigned n = 0; n < 3; n++) { /* 100, 200 and 300 links */
        cases_begin(&world);
        world.host.max_links = 100 * (n + 1);
        fake_world_open(&world);
        fake_echo(&world, A);
        memset(users, 0, sizeof users);
        cases_ask(&world, users, 100 * (n + 1), A);
        fake_run(&world, 1);
        at[n] = testing_bytes(world.t);
        fake_world_end(&world);
    }
    cr_assert(le(sz, at[2] - at[1], 100 * 300)); /* 256 and its place among the timers, which grow by doubling */
    cr_assert(ge(sz, at[2] - at[1], 100 * 200));
}

/* Without a heartbeat, which does not exist yet, the kernel finds it, where it was told how long to wait. */
Test(cases, VD10_a_black_hole_under_sent_bytes_is_found_by_user_timeout)
{
    static const struct transport_tcp_options settings = {.size = sizeof settings, .user_timeout = 20};
    struct transport tcp = transport_tcp;
    struct fake_world world;
    struct fake_user user = {0};
    char byte;

    cases_begin(&world);
    tcp.config = &settings;
    world.host.transport = &tcp;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    fake_hold(&world, &user, A);
    fake_exchange(&world, &user);
    testing_peer_cut(peer, LINK_TIMED_OUT);
    fake_send(&user, "?");
    fake_run(&world, 19.9);
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), LINKPOOL_EAGAIN));
    fake_run(&world, 0.2);
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), LINKPOOL_ELOST));
    cr_assert(eq(int, user.lease.system_errno, ETIMEDOUT));
    fake_world_end(&world);
}

/* ---- texts ---- */

static void expect_refused(const char *const *texts, size_t n)
{
    struct fake_world world;
    struct fake_user user = {0};
    char why[160];

    cases_open(&world);
    for (size_t i = 0; i < n; i++) {
        cr_assert(eq(int, link_address_check(texts[i], why, sizeof why), LINKPOOL_EADDRESS), "%.40s", texts[i]);
        cr_assert(eq(int, fake_ask(&world, &user, texts[i]), LINKPOOL_EADDRESS), "%.40s", texts[i]);
        cr_assert(eq(ptr, pool_host(world.pool, texts[i]), NULL), "%.40s", texts[i]);
    }
    cr_assert(eq(uint, fake_stats(&world).hosts, 0));
    fake_world_end(&world);
}

Test(cases, VE9_line_ends_and_other_controls_in_an_address_are_refused)
{
    static const char *const texts[] = {"10.0.0.1:80\r\n", "10.0.0.1\r\n:80", "10.0.0.1:80\n", "\n10.0.0.1:80",
        "10.0.0.1:8\r0", "10.0.0.1:80 ", " 10.0.0.1:80", "10.0.0.1:80\t", "[::1\r\n]:80", "[::1]\n:80", "\r\n",
        "a\rb:80"};

    expect_refused(texts, sizeof texts / sizeof *texts);
}

Test(cases, VF3_a_unix_path_is_whole_or_refused)
{
    char text[5000] = "unix:/", canonical[400], peers[2][200];
    struct fake_world world;

    for (size_t length = 105; length < 4200; length += length < 110 ? 1 : 4000) {
        memset(text + 6, 'x', length - 1);
        text[5 + length] = '\0';
        bool taken = !link_address_check(text, canonical, sizeof canonical);
        cr_assert(eq(int, taken, length <= 107), "%zu", length);
        if (taken)
            cr_assert(eq(str, canonical, text));
    }
    text[5 + 107] = '\0'; /* two of the longest that differ in their last byte are two places */
    cases_open(&world);
    for (int i = 0; i < 2; i++) {
        text[5 + 106] = (char)('a' + i);
        strcpy(peers[i], text);
        fake_echo(&world, peers[i]);
        cases_use(&world, peers[i]);
    }
    cr_assert(eq(uint, fake_stats(&world).hosts, 2));
    fake_world_end(&world);
    expect_refused((const char *const[]){"unix:", "unix:@", ""}, 3);
}

Test(cases, VF4_the_longest_texts_of_ipv6_are_read_whole_or_refused)
{
    static const char *const texts[] = {"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%verylongzonename]:80",
        "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%verylong",
        "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555]:80", /* its first 45 bytes would do */
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:80", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffff]:80",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0000]:80"};
    char text[160];

    expect_refused(texts, sizeof texts / sizeof *texts);
    cr_assert(
        eq(int, link_address_check("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535", text, sizeof text), 0));
    cr_assert(eq(str, text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"));
}

Test(cases, VF5_names_of_any_length_and_odd_numbers_are_refused_never_cut)
{
    static const size_t lengths[] = {64, 253, 254, 255, 256, 65536};
    static const char *const texts[] = {"127.1:80", "0x7f.1:80", "0x7f.0.0.1:80", "010.0.0.1:80", "2130706433:80",
        "10.0.0.1.:80", "10.0.0.1%00:80", "10.0.0.1%2f:80", "a@10.0.0.1:80", "10.0.0.1:80/", "10.0.0.1:080",
        "10.0.0.1:+80", "10.0.0.1:65536", "10.0.0.256:80", "10.0.0.1:", "10.0.0.1", ":80", "localhost:80"};
    static char name[65536 + 8];

    for (size_t i = 0; i < 6; i++) {
        memset(name, 'a', lengths[i]);
        strcpy(name + lengths[i], ":80");
        expect_refused((const char *const[]){name}, 1);
    }
    expect_refused(texts, sizeof texts / sizeof *texts);
}
