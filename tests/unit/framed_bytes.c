/* framed_bytes.c - the examples of docs/linkpool-framed.7, byte for byte: what the page shows is what goes, and what
 * comes is understood. The page itself is read. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linkpool/framed.h"
#include "tests/fakes/owner.h"

enum {
    LINES = 16
};

static struct {
    bool ours;
    unsigned char bytes[64];
    size_t n;
} lines[LINES];
static unsigned n_lines;

static void take_line(char *line)
{
    char pair[3] = {0};
    size_t in_pair = 0;

    cr_assert(lt(uint, n_lines, LINES));
    lines[n_lines].ours = !strncmp(line, "client", 6);
    for (char *at = line + 6; *at; at++) {
        if (!isxdigit((unsigned char)*at))
            continue;
        pair[in_pair++] = *at;
        if (in_pair < 2)
            continue;
        lines[n_lines].bytes[lines[n_lines].n++] = (unsigned char)strtoul(pair, NULL, 16);
        in_pair = 0;
    }
    cr_assert(eq(sz, in_pair, 0));
    n_lines++;
}

static void read_page(void)
{
    FILE *page = fopen("docs/linkpool-framed.7", "r");
    bool examples = false;
    char line[256];

    cr_assert(ne(ptr, page, NULL), "to be run from the root of the tree");
    while (fgets(line, sizeof line, page)) {
        examples |= !strncmp(line, ".Sh EXAMPLES", 12);
        if (examples && (!strncmp(line, "client  ", 8) || !strncmp(line, "server  ", 8)))
            take_line(line);
    }
    fclose(page);
    cr_assert(eq(uint, n_lines, 7));
}

static unsigned answers;

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)channel;
    cr_assert(eq(sz, n, 2));
    cr_assert(eq(int, memcmp(bytes, "ho", 2), 0));
    answers++;
}

static struct fake_owner owner;
static size_t seen; /* bytes that the peer had received before */

static void expect_sent(unsigned line)
{
    size_t n;
    const unsigned char *all;

    fake_owner_settle(&owner);
    all = testing_peer_received(owner.peer, &n);
    cr_assert(eq(sz, n - seen, lines[line].n), "line %u", line);
    cr_assert(eq(int, memcmp(all + seen, lines[line].bytes, lines[line].n), 0), "line %u", line);
    seen = n;
}

static void say(unsigned line)
{
    cr_assert(not(lines[line].ours));
    cr_assert(eq(int, testing_peer_say(owner.peer, lines[line].bytes, lines[line].n), 0));
    fake_owner_settle(&owner);
}

Test(framed_bytes, the_pages_examples_are_what_is_sent_and_understood)
{
    static const struct channel_events events = {.message = on_message};
    struct framed_options options;

    read_page();
    framed_options_init(&options);
    options.token = "me";
    options.token_size = 2;
    struct protocol protocol = framed_protocol(&options);
    fake_owner_begin(&owner, TESTING_SILENT);
    owner.options.protocol = &protocol;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_HANDSHAKING, 1);
    expect_sent(0);
    say(1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, fake_link_stats(owner.link).room, 100));
    channel_watch(owner.channel, &events, 0);
    cr_assert(eq(int, channel_send(owner.channel, "hi", 2), 0));
    expect_sent(2);
    say(3);
    cr_assert(eq(uint, answers, 1));
    cr_assert(eq(int, channel_send(owner.channel, "hi", 2), 0));
    expect_sent(4);
    cr_assert(not(lines[6].ours));
    cr_assert(lines[5].ours);
    link_free(owner.link);
    owner.link = NULL;
    fake_owner_end(&owner);
}

static void on_done(struct pool_lease *lease)
{
    (void)lease;
}

/* A CANCEL needs a channel that is given up while the link goes on: a pool's. */
Test(framed_bytes, the_pages_cancel_is_what_is_sent)
{
    struct pool_host_options host;
    struct pool_options options;
    struct pool_lease lease = {.done = on_done};
    struct testing *t = testing_new(1);
    struct testing_peer *peer = testing_peer_add(t, FAKE_ADDRESS, TESTING_SILENT);
    const unsigned char *all;
    size_t n;

    read_page();
    pool_host_options_init(&host);
    host.protocol = &protocol_framed;
    pool_options_init(&options);
    options.host = &host;
    options.env = testing_env(t);
    struct pool *pool = pool_new_on(testing_driver(t), &options);
    for (int i = 0; i < 2; i++) {
        cr_assert(ge(int, pool_acquire(pool, FAKE_ADDRESS, &lease), 0));
        testing_run_for(t, 0.001);
        if (!i)
            testing_peer_say(peer, lines[1].bytes, lines[1].n);
        testing_run_for(t, 0.001);
        cr_assert(ne(ptr, lease.channel, NULL));
        cr_assert(eq(int, channel_send(lease.channel, "hi", 2), 0));
        testing_run_for(t, 0.001);
        testing_peer_received(peer, &n);
        if (!i)
            testing_peer_say(peer, lines[3].bytes, lines[3].n);
        testing_run_for(t, 0.001);
        if (!i)
            cr_assert(eq(int, pool_release(&lease, POOL_REUSE), 0));
    }
    all = testing_peer_received(peer, &n);
    cr_assert(eq(int, memcmp(all + n - lines[4].n, lines[4].bytes, lines[4].n), 0));
    cr_assert(eq(int, pool_release(&lease, POOL_DISCARD), 0));
    testing_run_for(t, 0.001);
    all = testing_peer_received(peer, &n);
    cr_assert(eq(int, memcmp(all + n - lines[5].n, lines[5].bytes, lines[5].n), 0));
    lease = (struct pool_lease){.done = on_done};
    cr_assert(eq(int, pool_acquire(pool, FAKE_ADDRESS, &lease), POOL_READY));
    testing_peer_say(peer, lines[6].bytes, lines[6].n); /* the server leaves: one that has sent nothing is denied */
    testing_run_for(t, 0.001);
    cr_assert(eq(ptr, lease.channel, NULL));
    cr_assert(eq(int, lease.fate, POOL_NOT_SENT));
    pool_free(pool);
    cr_assert(eq(sz, testing_blocks(t), 0));
    testing_free(t);
}
