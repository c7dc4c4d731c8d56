/* mux_test.c - a shared protocol from outside: its room goes 3, 0, 1, 5, and leases follow; its notices are taken while
 * nobody holds the link; it leaves with a word. In virtual time, and on a real loop. */
#include <stdio.h>

#include "mux.h"
#include "stage.h"

enum {
    CALLERS = 10
};

struct caller {
    struct pool_lease lease;
    unsigned char answer;
};

struct server {
    struct testing_conn *conn; /* the latest */
    unsigned asked, left;
};

struct play {
    struct stage stage;
    struct mux_counts counts;
    struct server server;
    struct pool_host *host;
    struct caller callers[CALLERS];
    unsigned waited_for; /* what the `..._is` functions compare with */
    bool drained;
};

/* ---- the server ---- */

static void say(struct testing_conn *conn, char kind, unsigned char id, unsigned char value)
{
    expect(testing_conn_send(conn, (unsigned char[]){(unsigned char)kind, id, value}, MUX_FRAME) == 0);
}

static void on_accepted(void *data, struct testing_conn *conn)
{
    ((struct server *)data)->conn = conn;
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct server *server = data;
    const unsigned char *frame = bytes;

    expect(n % MUX_FRAME == 0);
    for (; n; n -= MUX_FRAME, frame += MUX_FRAME) {
        if (frame[0] == MUX_LEAVE) {
            server->left++;
            continue;
        }
        expect(frame[0] == MUX_ASK);
        server->asked++;
        say(conn, MUX_ANSWER, frame[1], (unsigned char)(frame[2] + 1));
    }
}

/* ---- the callers ---- */

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct caller *caller = channel_lease(channel)->data;

    expect(n == 1);
    caller->answer = *(const unsigned char *)bytes;
}

static const struct channel_events events = {.message = on_message};

static void on_done(struct pool_lease *lease)
{
    expect(lease->status == POOL_READY);
}

static int acquire(struct play *play, unsigned i)
{
    struct caller *caller = &play->callers[i];

    *caller = (struct caller){.lease = {.done = on_done, .data = caller}};
    return pool_acquire_host(play->host, &caller->lease);
}

static bool holds(const struct play *play, unsigned i)
{
    return play->callers[i].lease.channel != NULL;
}

static void release(struct play *play, unsigned i)
{
    expect(pool_release(&play->callers[i].lease, POOL_REUSE) == 0);
}

static bool holder_is(void *data)
{
    struct play *play = data;

    return holds(play, play->waited_for);
}

static bool notices_are(void *data)
{
    struct play *play = data;

    return play->counts.notices == play->waited_for;
}

static bool answer_is_there(void *data)
{
    struct play *play = data;

    return play->callers[play->waited_for].answer != 0;
}

static void until(struct play *play, bool (*reached)(void *data), unsigned what)
{
    play->waited_for = what;
    stage_until(&play->stage, reached, play);
}

/* A notice comes after all that was said before it: turns of the loop, without a clock. */
static void settle(struct play *play)
{
    say(play->server.conn, MUX_NOTICE, 0, 0);
    until(play, notices_are, play->counts.notices + 1);
}

static void ask(struct play *play, unsigned i)
{
    unsigned char question = (unsigned char)(10 * i + 1);
    struct caller *caller = &play->callers[i];

    caller->answer = 0;
    expect(channel_watch(caller->lease.channel, &events, LINKPOOL_READ) == 0);
    expect(channel_send(caller->lease.channel, &question, 1) == 0);
    until(play, answer_is_there, i);
    expect(caller->answer == question + 1);
}

/* ---- the scenario ---- */

static void room_of_3(struct play *play)
{
    for (unsigned i = 0; i < 4; i++)
        expect(acquire(play, i) == POOL_PENDING);
    until(play, holder_is, 2);
    expect(holds(play, 0) && holds(play, 1) && !holds(play, 3));
    for (unsigned i = 0; i < 3; i++)
        ask(play, i);
    expect(play->server.asked == 3);
}

/* Callers 0 to 2 hold, 3 waits. The last of them stays: a full host's link that nobody holds, and that has no room,
 * gives way to another. */
static void room_of_0(struct play *play)
{
    say(play->server.conn, MUX_ROOM, 0, 0);
    settle(play);
    ask(play, 1); /* those who hold go on */
    release(play, 0);
    release(play, 1);
    settle(play);
    expect(!holds(play, 3));
}

/* Caller 2 holds, 3 waits. */
static void room_of_1(struct play *play)
{
    say(play->server.conn, MUX_ROOM, 0, 1);
    settle(play);
    expect(!holds(play, 3));
    release(play, 2);
    until(play, holder_is, 3);
    expect(acquire(play, 4) == POOL_PENDING);
    settle(play);
    expect(!holds(play, 4));
    ask(play, 3);
}

/* Caller 3 holds, 4 waits. */
static void room_of_5(struct play *play)
{
    for (unsigned i = 5; i < 9; i++)
        expect(acquire(play, i) == POOL_PENDING);
    say(play->server.conn, MUX_ROOM, 0, 5);
    until(play, holder_is, 7);
    settle(play);
    expect(!holds(play, 8)); /* 3 to 7 are five */
    ask(play, 7);
    release(play, 3);
    until(play, holder_is, 8);
    for (unsigned i = 4; i < 9; i++)
        release(play, i);
    unsigned idle_before = play->counts.idle_notices;
    settle(play);
    expect(play->counts.idle_notices > idle_before); /* nobody held the link: they were taken, and it lives */
    expect(acquire(play, 0) == POOL_READY);          /* at hand: no wait */
    release(play, 0);
    expect(testing_peer_accepted(play->stage.peer) == 1);
    expect(play->counts.rooms == 4);
}

/* The server is leaving: who holds finishes there, the next goes to a new link. */
static void going(struct play *play)
{
    expect(acquire(play, 0) == POOL_READY);
    say(play->server.conn, MUX_GOING, 0, 0);
    settle(play);
    expect(acquire(play, 1) == POOL_PENDING);
    ask(play, 0);
    release(play, 0);
    until(play, holder_is, 1);
    expect(testing_peer_accepted(play->stage.peer) == 2);
    ask(play, 1);
    release(play, 1);
}

static void on_drained(struct pool *pool, void *data)
{
    (void)pool;
    ((struct play *)data)->drained = true;
}

static bool all_left(void *data)
{
    struct play *play = data;

    return play->drained && testing_peer_open(play->stage.peer) == 0;
}

static void leaving(struct play *play)
{
    expect(pool_drain(play->stage.pool, 5, on_drained, play) == 0);
    stage_until(&play->stage, all_left, play);
    expect(play->server.left >= 1);
    expect(play->counts.opened == play->counts.closed);
    expect(play->counts.ended == 2);
}

static void play_it(bool real)
{
    static const unsigned char greeting[MUX_FRAME] = {MUX_ROOM, 0, 3};
    struct play play = {0};
    struct protocol protocol = mux;
    struct pool_host_options options;
    struct testing_server server = {
        .size = sizeof server, .accepted = on_accepted, .received = on_received, .data = &play.server};

    protocol.config = &play.counts;
    pool_host_options_init(&options);
    options.protocol = &protocol;
    options.max_links = 1; /* so that room alone decides */
    stage_up(&play.stage, real, &options);
    testing_peer_on(play.stage.peer, &server);
    expect(testing_peer_greet(play.stage.peer, greeting, sizeof greeting) == 0);
    expect((play.host = pool_host(play.stage.pool, testing_peer_address(play.stage.peer))));
    room_of_3(&play);
    room_of_0(&play);
    room_of_1(&play);
    room_of_5(&play);
    going(&play);
    leaving(&play);
    stage_down(&play.stage);
}

int main(void)
{
    play_it(false);
    play_it(true);
    puts("mux_test: passed");
    return 0;
}
