/* scenes_time.c - the clock's leaps, callbacks that take their time, and all that happens in one instant. */
#include <stddef.h>

#include "tests/fakes/session.h"
#include "tests/sim/seam/play.h"

static void hold(struct play *p, unsigned user, unsigned of)
{
    ask(p, user, of);
    run(p, 0.05);
}

/* ---- leaps ---- */

static void leap_while_idle(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++)
        hold(p, i, 0);
    give_back(p, 0);
    give_back(p, 1);
    run(p, 1);
    leap(p, 3600);
    run(p, 1);
    look(p);
    give_back(p, 2);
    run(p, 1);
    hold(p, 0, 0);
    run(p, 1);
}

static void leap_while_connecting(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    ask(p, 0, 0);
    run(p, 0.5);
    leap(p, 3600);
    run(p, 1);
    look(p);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 5);
    hold(p, 1, 0);
    look(p);
}

/* What came while the process stood still is seen before the deadline that passed meanwhile. */
static void leap_over_an_answer(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.5, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    leap(p, 3600);
    run(p, 1);
    look(p);
}

static void leap_in_backoff(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    p->users[0].lease.timeout = 10000;
    ask(p, 0, 0);
    run(p, 3);
    leap(p, 3600);
    run(p, 3);
    behave(p, 0, TESTING_ACCEPT);
    leap(p, 3600);
    run(p, 3);
    look(p);
}

static void leap_before_an_acquire(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    hold(p, 0, 0);
    give_back(p, 0);
    run(p, 1);
    leap(p, 100);
    ask(p, 1, 0); /* the link was idle too long, and nobody has noticed */
    ask(p, 2, 1); /* its time is counted from now */
    run(p, 6);
    look(p);
}

static void quiet_hour(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    run(p, 3600);
    exchange(p, 0);
    give_back(p, 0);
    run(p, 3600);
    look(p);
}

/* No timer but those of leases. */
static void one_link_proven(struct play *p)
{
    p->host.max_links = 1;
    p->host.idle_timeout = 0;
    p->backoff.stable_after = 0;
}

/* ---- a heartbeat, sleeps and stalls ---- */

/* Exclusive, for an echoing peer: each byte that comes while nobody holds the link is the answer to a ping. */
static int ping(struct protocol_link *pl)
{
    return protocol_write(pl, &(struct iovec){(char[]){'p'}, 1}, 1) == 1 ? 0 : LINKPOOL_ELOST;
}

static int hear(struct protocol_link *pl)
{
    char letter;
    ssize_t got;

    while ((got = protocol_read(pl, &letter, 1)) > 0)
        if (protocol_pong(pl))
            return 0;
    return got == LINKPOOL_EAGAIN;
}

static const struct protocol asking = {
    .size = sizeof(struct protocol), .name = "asking", .ping = ping, .idle_input = hear};
static const struct heartbeat_policy impatient = {
    .size = sizeof(struct heartbeat_policy), .interval = 1, .timeout = 5, .misses = 1};

static void can_ask(struct play *p)
{
    p->host.protocol = &asking;
    p->host.heartbeat = &impatient;
    p->host.idle_timeout = 0;
}

/* The time of the answer has passed when the process goes on, but the answer lies in the socket. */
static void stall_while_asked(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0, 0.5);
    hold(p, 0, 0);
    give_back(p, 0);
    run(p, 1.2);
    leap(p, 60);
    run(p, 0.01);
    expect_idle(p, 0, 1, LINK_NO_REASON);
    look(p);
}

static void sleep_with_links(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    hold(p, 1, 0);
    give_back(p, 1);
    run(p, 0.5);
    expect_idle(p, 0, 1, LINK_NO_REASON);
    suspend(p, 3600);
    run(p, 11); /* to the next alarm: nothing else wakes the loop */
    expect_idle(p, 0, 0, LINK_NO_REASON);
    exchange(p, 0);
    give_back(p, 0);
    expect_idle(p, 0, 0, LINK_NO_REASON);
    run(p, 1);
    look(p);
}

static void sleep_with_links_that_answer(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    hold(p, 1, 0);
    give_back(p, 0);
    give_back(p, 1);
    run(p, 0.5);
    suspend(p, 3600);
    run(p, 0.6);
    cut(p, 0, LINK_TIMED_OUT);
    suspend(p, 0.5); /* too short to be one */
    run(p, 0.5);
    expect_idle(p, 0, 2, LINK_NO_REASON);
    suspend(p, 1.5);
    run(p, 7);
    expect_idle(p, 0, 0, LINK_HEARTBEAT_LOST);
    look(p);
}

static void wake(void *data)
{
    (void)data; /* that something of the user's wakes the loop is enough */
}

/* It has waited for 20 s of hundreds. */
static void sleep_in_a_backoff(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    p->users[0].lease.timeout = 10000;
    ask(p, 0, 0);
    run(p, 20);
    behave(p, 0, TESTING_ACCEPT);
    suspend(p, 3600);
    at(p, 0.1, wake, p);
    run(p, 0.5);
    expect(p, 0, POOL_READY, LINK_NO_REASON);
    look(p);
}

static void long_backoff(struct play *p)
{
    p->backoff.base = p->backoff.cap = 500;
}

/* ---- a callback that takes its time ---- */

static void busy_then(struct user *user, enum event event)
{
    if (event == TOLD)
        leap(user->play, 1.5);
}

/* Two deadlines and an answer pass meanwhile. */
static void busy_when_told(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    echo_peer(p, 2);
    delay(p, 2, 1, 0);
    p->users[1].lease.timeout = 0.9;
    p->users[2].lease.timeout = 1.2;
    ask(p, 1, 1);
    ask(p, 2, 1);
    p->users[3].lease.timeout = 1.4;
    ask(p, 3, 2);
    run(p, 0.1);
    p->users[0].then = busy_then;
    ask(p, 0, 0);
    run(p, 3);
    look(p);
    give_back(p, 0);
    run(p, 1);
}

static void busy_and_ask_then(struct user *user, enum event event)
{
    struct play *p = user->play;

    if (event != TOLD)
        return;
    leap(p, 2);
    for (unsigned i = 10; i < 14; i++) { /* counted from when the turn began: two are over at once */
        p->users[i].lease.timeout = 0.7 * (i - 9);
        ask(p, i, 1);
    }
}

static void asks_after_being_busy(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    p->users[0].then = busy_and_ask_then;
    ask(p, 0, 0);
    run(p, 6);
    look(p);
    ask(p, 1, 1);
    run(p, 6);
}

static void busy_and_late_then(struct user *user, enum event event)
{
    if (event != TOLD || !user->lease.channel)
        return;
    if (user->i)
        leap_and_refresh(user->play, 0.5);
    else
        leap(user->play, 0.5);
    ask(user->play, user->i + 20, 1);
}

/* A deadline, sooner than all others, lies beyond the end of the callback that is busy. libev counts from when the turn
 * began, or, where a user has told it the time, from then. */
static void deadline_after_being_busy(struct play *p)
{
    for (unsigned i = 0; i < 2; i++) {
        echo_peer(p, i);
        p->users[i].then = busy_and_late_then;
        p->users[i + 20].lease.timeout = 0.8;
    }
    ask(p, 11, 1);
    run(p, 0.1);
    ask(p, 0, 0);
    run(p, 4);
    discard(p, 0);
    ask(p, 1, 0);
    run(p, 4);
    discard(p, 11);
    run(p, 1);
}

static void be_busy(void *data)
{
    leap(data, 3.3);
}

static void busy_timer(struct play *p)
{
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    peer(p, 0, TESTING_REFUSE);
    ask(p, 0, 0);
    at(p, 0.4, be_busy, p);
    run(p, 10);
    look(p);
}

/* ---- in one instant ---- */

static void as_its_deadline_passes(struct play *p)
{
    p->host.connect_timeout = 0.5;
}

static void ready_with_the_deadline(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.5, 0);
    ask(p, 0, 0);
    run(p, 1);
    look(p);
}

static void handshake_with_the_deadline(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0, 0.25);
    p->host.connect_timeout = 0.5;
    ask(p, 0, 0);
    run(p, 1);
    look(p);
}

static void quarter(struct play *p)
{
    p->host.protocol = &fake_session;
    p->host.connect_timeout = 0.25;
}

static void give_back_0(void *data)
{
    give_back(data, 0);
}

static void one_link(struct play *p)
{
    p->host.max_links = 1;
}

/* Alarms come before a user's own timers of the same instant. */
static void returned_with_the_deadline(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0, 0);
    p->users[1].lease.timeout = 0.5;
    ask(p, 1, 0);
    ask(p, 2, 0);
    at(p, 0.5, give_back_0, p);
    run(p, 1);
    look(p);
}

static void ask_1(void *data)
{
    ask(data, 1, 0);
}

static void always_proven(struct play *p)
{
    p->backoff.stable_after = 0;
}

/* The end is seen before whoever asks in the same poll is handed the link. */
static void end_of_file_with_a_users_event(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT_AND_CLOSE);
    delay(p, 0, 0, 0.5);
    p->users[1].reads = true;
    ask(p, 0, 0);
    run(p, 0.25);
    give_back(p, 0);
    knock(p, 0.25, ask_1, p); /* when the peer closes */
    run(p, 0.5);
    look(p);
}

/* And a reset, and bytes nobody has asked for. */
static void worse_with_a_users_event(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT_AND_RESET);
    delay(p, 0, 0, 0.5);
    ask(p, 0, 0);
    run(p, 0.25);
    give_back(p, 0);
    knock(p, 0.25, ask_1, p);
    run(p, 2);
    look(p);
    behave(p, 0, TESTING_ACCEPT);
    greet(p, 0, "unasked");
    ask(p, 2, 0);
    run(p, 0.25);
    give_back(p, 2);
    knock(p, 0.25, ask_1, p);
    run(p, 1);
    look(p);
}

/* Who waits is told at the end of the turn, after the user's own event, that the deadline is met. */
static void deadline_with_a_users_event(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.5, 0);
    p->users[0].lease.timeout = 0.5;
    ask(p, 0, 0);
    knock(p, 0.5, ask_1, p);
    run(p, 1);
    look(p);
}

static void ask_again_then(struct user *user, enum event event)
{
    if (event != TOLD || !user->lease.channel)
        return;
    give_back(user->play, user->i);
    if (user->heard++ < 20) {
        size_t times = user->heard;
        ask(user->play, user->i, 0);
        user->heard = times;
    }
}

/* Each return serves the next, who is told after the next poll, which must not wait: all in one instant. */
static void work_without_waiting(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++) {
        p->users[i].then = ask_again_then;
        ask(p, i, 0);
    }
    run(p, 1);
    look(p);
}

static void discard_and_ask_then(struct user *user, enum event event)
{
    if (event != HEARD || user->heard > 100)
        return;
    discard(user->play, user->i);
    ask(user->play, user->i + 1, 0);
}

/* The next link's descriptor has the number of the last one's. */
static void same_number_again(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 10; i++) {
        p->users[i].reads = true;
        p->users[i].then = discard_and_ask_then;
    }
    p->users[9].then = NULL;
    ask(p, 0, 0);
    for (unsigned i = 0; i < 10; i++) {
        run(p, 0.1);
        if (p->users[i].lease.channel)
            say(p, i, "?");
    }
    run(p, 1);
    look(p);
}

/* What is known of a descriptor moves in the driver's table when another leaves it. */
static void places_move(struct play *p)
{
    static const unsigned gone[] = {0, 2, 5, 1}, come[] = {10, 11, 12, 13};

    echo_peer(p, 0);
    for (unsigned i = 0; i < 14; i++)
        p->users[i].reads = true;
    for (unsigned i = 0; i < 6; i++)
        hold(p, i, 0);
    for (unsigned i = 0; i < 4; i++) {
        discard(p, gone[i]);
        if (i & 1) {
            hold(p, come[i - 1], 0);
            hold(p, come[i], 0);
        }
        for (unsigned user = 0; user < 14; user++)
            if (p->users[user].lease.channel) {
                say(p, user, "?");
                run(p, 0.01);
            }
    }
    run(p, 1);
    look(p);
}

static void say_at_once(void *data)
{
    struct play *p = data;

    for (unsigned i = 0; i < 16; i++)
        say(p, i, "?");
}

static void many_at_once(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 16; i++) {
        p->users[i].reads = true;
        ask(p, i, 0);
    }
    run(p, 0.5);
    at(p, 0.1, say_at_once, p);
    run(p, 0.5);
    for (unsigned i = 0; i < 16; i++)
        give_back(p, i);
    run(p, 0.5);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 0.5);
    look(p);
}

static void many_die_at_once(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 12; i++)
        ask(p, i, 0);
    run(p, 20);
    for (unsigned i = 0; i < 12; i++)
        give_back(p, i);
    behave(p, 0, TESTING_REFUSE);
    cut(p, 0, LINK_RESET);
    p->users[20].lease.flags = POOL_WAIT_FOR_READY;
    run(p, 0.1);
    ask(p, 20, 0);
    run(p, 2);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 3);
    look(p);
}

const struct scenario scenarios_time[] = {
    {.name = "leap while idle", .play = leap_while_idle},
    {.name = "leap while connecting", .play = leap_while_connecting},
    {.name = "leap over an answer", .play = leap_over_an_answer},
    {.name = "leap in a backoff", .play = leap_in_backoff},
    {.name = "stall while asked", .options = can_ask, .play = stall_while_asked},
    {.name = "sleep with links", .play = sleep_with_links},
    {.name = "sleep with links that answer", .options = can_ask, .play = sleep_with_links_that_answer},
    {.name = "sleep in a backoff", .options = long_backoff, .play = sleep_in_a_backoff},
    {.name = "leap before an acquire", .play = leap_before_an_acquire},
    {.name = "quiet hour", .play = quiet_hour},
    {.name = "busy when told", .play = busy_when_told},
    {.name = "asks after being busy", .play = asks_after_being_busy, .tcp_only = true},
    {.name = "deadline after being busy", .options = one_link_proven, .play = deadline_after_being_busy},
    {.name = "busy timer", .play = busy_timer},
    {.name = "ready with the deadline", .options = as_its_deadline_passes, .play = ready_with_the_deadline},
    {.name = "handshake with the deadline", .options = quarter, .play = handshake_with_the_deadline},
    {.name = "returned with the deadline", .options = one_link, .play = returned_with_the_deadline},
    {.name = "end of file with a user's event", .options = always_proven, .play = end_of_file_with_a_users_event},
    {.name = "reset and bytes with a user's event", .options = always_proven, .play = worse_with_a_users_event},
    {.name = "deadline with a user's event", .play = deadline_with_a_users_event},
    {.name = "work without waiting", .options = one_link, .play = work_without_waiting},
    {.name = "same number again", .play = same_number_again},
    {.name = "places move", .play = places_move},
    {.name = "many at once", .play = many_at_once},
    {.name = "many die at once", .play = many_die_at_once},
    {0},
};
