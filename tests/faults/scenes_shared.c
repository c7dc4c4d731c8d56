/* scenes_shared.c - scenarios of links that carry several channels: made by the slab, lost one by one and all at once.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/shared.h"
#include "tests/faults/scenes.h"

static struct protocol wide;

/* A host of so many channels a link; its protocol may do more. */
static struct pool_host *wide_host(struct scene *scene, unsigned channels, const struct fake_shared_ways *ways)
{
    wide = fake_shared;
    wide.max_channels = channels;
    wide.config = ways;
    return scene_protocol(scene, ADDRESS, &wide);
}

static void ask_all(struct scene *scene, struct pool_host *host, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        scene_ask_host(scene, i, host);
}

static void shared(struct scene *scene)
{
    ask_all(scene, wide_host(scene, 3, NULL), 5);
    scene_run(scene, 0.01);
    scene_exchange(scene);
}
SCENARIO(shared);

/* More channels than one slab holds, the later ones by those who find it READY. */
static void shared_by_many(struct scene *scene)
{
    struct pool_host *host = wide_host(scene, 2 * USERS, NULL);

    scene_ask_host(scene, 0, host);
    scene_run(scene, 0.01);
    ask_all(scene, host, USERS);
    scene_run(scene, 0.01);
    scene_exchange(scene);
}
SCENARIO(shared_by_many);

static void shared_and_lost(struct scene *scene)
{
    struct pool_host *host = wide_host(scene, 4, NULL);

    scene->natural = true;
    ask_all(scene, host, 6);
    scene_run(scene, 0.01);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_RESET);
    scene_run(scene, 1);
    ask_all(scene, host, 3);
}
SCENARIO(shared_and_lost);

static void shared_and_talkative(struct scene *scene)
{
    static const struct fake_shared_ways talks = {
        .speaks_at_open = true, .speaks_at_close = true, .speaks_at_leave = true};
    struct pool_host *host = wide_host(scene, 4, &talks);

    for (unsigned i = 0; i < 3; i++) {
        ask_all(scene, host, 6);
        scene_run(scene, 0.01);
        scene_exchange(scene);
        scene_give_all_back(scene);
    }
}
SCENARIO(shared_and_talkative);

static void shared_and_refused(struct scene *scene)
{
    static const struct fake_shared_ways refuses = {.refuses = true};

    ask_all(scene, wide_host(scene, 4, &refuses), 3);
    scene_run(scene, 1);
}
SCENARIO(shared_and_refused);

/* ---- a protocol whose peer has its say ---- */

static int on_word(struct protocol_link *pl, unsigned events)
{
    struct protocol_channel *pc = protocol_next_channel(pl, NULL);
    char word;
    ssize_t got = protocol_read(pl, &word, 1);

    (void)events;
    if (got <= 0)
        return got == LINKPOOL_EAGAIN ? 0 : LINKPOOL_ELOST;
    switch (word) {
    case 'r': /* more room */
        return protocol_set_room(pl, 20);
    case 'g':
        return protocol_going(pl, NULL, LINK_NO_REASON, NULL);
    case 's':
        return protocol_going(pl, NULL, LINK_SENT_AWAY, "the peer is unwell");
    case 'e':
        return pc ? protocol_end(pc, LINK_PROTOCOL_ERROR, true) : 0;
    case 'f':
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "the peer wants it so");
    default:
        return pc ? protocol_deliver(pc, &word, 1) : 0;
    }
}

static int swallow(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    (void)pl, (void)pc, (void)bytes, (void)n;
    return 0;
}

static const struct protocol led = {.size = sizeof led,
    .name = "led",
    .flags = PROTOCOL_SHARED,
    .max_channels = 2,
    .channel_size = 8,
    .input = on_word,
    .send = swallow};

static void say(struct scene *scene, const char *word)
{
    testing_peer_say(scene_peer(scene, ADDRESS), word, 1);
    scene_run(scene, 0.01);
}

static void shared_and_given_room(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, ADDRESS, &led);

    ask_all(scene, host, 1);
    scene_run(scene, 0.01);
    say(scene, "r");
    ask_all(scene, host, 12);
    scene_run(scene, 0.01);
}
SCENARIO(shared_and_given_room);

static void shared_and_ended(struct scene *scene)
{
    static const char *const words[] = {"e", "m", "g", "f"};
    struct pool_host *host = scene_protocol(scene, ADDRESS, &led);

    scene->natural = true;
    scene->ends_leases = true;
    for (unsigned i = 0; i < 4; i++) {
        ask_all(scene, host, 4);
        scene_run(scene, 0.01);
        say(scene, words[i]);
    }
    scene_run(scene, 3);
    ask_all(scene, host, 4);
}
SCENARIO(shared_and_ended);

/* In use all the while: so that the wait for the next is carried by another link. */
static void shared_and_sent_away(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, ADDRESS, &led);

    scene->natural = true;
    scene->ends_leases = true;
    ask_all(scene, host, 2);
    scene_run(scene, 0.01);
    say(scene, "s");
    scene_run(scene, 1);
    ask_all(scene, host, 2);
    scene_run(scene, 1);
}
SCENARIO(shared_and_sent_away);

static void shared_and_recycled(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, ADDRESS, &led);

    scene->natural = true;
    ask_all(scene, host, 2);
    scene_run(scene, 0.01);
    if (host)
        cr_assert(eq(int, pool_host_recycle(host, 2), 0));
    scene_run(scene, 3);
    ask_all(scene, host, 2);
    scene_run(scene, 0.01);
}
SCENARIO(shared_and_recycled);
