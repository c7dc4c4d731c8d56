/* hop_test.c - a transport from outside that changes its descriptor while it connects: leases get the second socket,
 * the first is gone, and an end in between leaves nothing. In virtual time, and on a real loop. */
#include <stdio.h>
#include <string.h>

#include "hop.h"
#include "stage.h"

struct play {
    struct stage stage;
    struct pool_lease lease;
    char answer[8];
    size_t n;
};

static void on_readable(struct channel *channel)
{
    struct play *play = channel_lease(channel)->data;
    ssize_t got = channel_read(channel, play->answer + play->n, sizeof play->answer - play->n);

    expect(got > 0);
    play->n += (size_t)got;
}

static const struct channel_events events = {.readable = on_readable};

static void on_done(struct pool_lease *lease)
{
    expect(lease->status == POOL_READY);
}

static int acquire(struct play *play)
{
    play->lease = (struct pool_lease){.done = on_done, .data = play};
    return pool_acquire(play->stage.pool, testing_peer_address(play->stage.peer), &play->lease);
}

static bool holds(void *data)
{
    return ((struct play *)data)->lease.channel != NULL;
}

static bool answered(void *data)
{
    return ((struct play *)data)->n == 4;
}

static bool one_is_open(void *data)
{
    struct play *play = data;

    return testing_peer_accepted(play->stage.peer) == 2 && testing_peer_open(play->stage.peer) == 1;
}

static bool first_is_accepted(void *data)
{
    return testing_peer_accepted(((struct play *)data)->stage.peer) >= 1;
}

static void talk(struct play *play)
{
    struct iovec word = {"ping", 4};

    play->n = 0;
    expect(channel_watch(play->lease.channel, &events, LINKPOOL_READ) == 0);
    expect(channel_writev(play->lease.channel, &word, 1) == 4);
    stage_until(&play->stage, answered, play);
    expect(memcmp(play->answer, "ping", 4) == 0);
}

static void set_up(struct play *play, bool real, const struct transport *transport)
{
    struct pool_host_options options;

    *play = (struct play){0};
    pool_host_options_init(&options);
    options.transport = transport;
    stage_up(&play->stage, real, &options);
    testing_peer_serve(play->stage.peer, testing_echo, NULL);
}

static void serves_on_the_second_socket(bool real, const struct transport *transport)
{
    struct play play;

    set_up(&play, real, transport);
    expect(acquire(&play) == POOL_PENDING);
    stage_until(&play.stage, holds, &play);
    talk(&play);
    stage_until(&play.stage, one_is_open, &play);
    expect(pool_release(&play.lease, POOL_REUSE) == 0);
    expect(acquire(&play) == POOL_READY);
    expect(play.lease.reused);
    talk(&play);
    expect(pool_release(&play.lease, POOL_REUSE) == 0);
    expect(testing_peer_accepted(play.stage.peer) == 2);
    stage_down(&play.stage);
}

static void ends_between_the_two(bool real, const struct transport *transport)
{
    struct play play;

    set_up(&play, real, transport);
    testing_peer_delay(play.stage.peer, 0.1, 0);
    expect(acquire(&play) == POOL_PENDING);
    stage_until(&play.stage, first_is_accepted, &play);
    expect(!play.lease.channel || real); /* a real kernel may have accepted both by now */
    if (!play.lease.channel)
        expect(pool_cancel(&play.lease) == 0);
    stage_down(&play.stage);
}

int main(void)
{
    static const struct transport *const transports[] = {&hop_to_another, &hop_to_the_same};

    for (unsigned i = 0; i < 4; i++) {
        serves_on_the_second_socket(i / 2, transports[i % 2]);
        ends_between_the_two(i / 2, transports[i % 2]);
    }
    puts("hop_test: passed");
    return 0;
}
