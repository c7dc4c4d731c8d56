/* scenes_edge.c - the clock's leaps, ties, work without end, frees within callbacks, and links on their own. */
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

/* ---- frees ---- */

static void free_then(struct user *user, enum event event)
{
    (void)event;
    if (user->play->pool)
        free_pool(user->play);
}

static void free_when_taken(struct user *user, enum event event)
{
    if (event == TAKEN && user->play->pool)
        free_pool(user->play);
}

static void free_within_done(struct play *p)
{
    echo_peer(p, 0);
    p->users[1].then = free_then;
    for (unsigned i = 0; i < 4; i++)
        ask(p, i, 0);
    run(p, 1);
}

static void free_within_readable(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++) {
        p->users[i].reads = true;
        hold(p, i, 0);
    }
    p->users[1].then = free_then;
    for (unsigned i = 0; i < 3; i++)
        say(p, i, "?");
    run(p, 1);
}

static void free_within_closed(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 4; i++)
        hold(p, i, 0);
    p->users[2].then = free_when_taken;
    drain(p, 1);
    run(p, 3);
}

static void free_within_a_timer(void *data)
{
    free_pool(data);
}

static void free_while_all_is_under_way(struct play *p)
{
    echo_peer(p, 0);
    peer(p, 1, TESTING_BLACK_HOLE);
    peer(p, 2, TESTING_REFUSE);
    hold(p, 0, 0);
    hold(p, 1, 0);
    give_back(p, 1);
    ask(p, 2, 1);
    p->users[3].lease.flags = POOL_WAIT_FOR_READY;
    ask(p, 3, 2);
    at(p, 0.7, free_within_a_timer, p);
    run(p, 2);
}

static void free_in_the_call_that_asked(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    ask(p, 1, 0);
    free_pool(p);
    run(p, 1);
}

/* ---- a link on its own ---- */

static void link_reconnects(struct play *p)
{
    echo_peer(p, 0);
    start_link(p);
    run(p, 0.5);
    link_says(p, "hello");
    run(p, 12);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 5);
    cut(p, 0, LINK_RESET);
    behave(p, 0, TESTING_REFUSE);
    run(p, 20);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 5);
    link_stop(p->link);
    run(p, 1);
    note(p, 0, "start: %d", link_start(p->link));
    run(p, 1);
}

static void edge_box(struct play *p)
{
    p->backoff = backoff_edge;
    p->host.connect_timeout = 2;
}

static void link_waits_ever_longer(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    start_link(p);
    run(p, 300);
    note(p, link_retry_in(p->link), "is %s", link_state_name(link_state(p->link)));
    leap(p, 3600);
    run(p, 100);
}

static void stop_then(struct play *p, enum event event)
{
    if (event == LINK_IS_DOWN)
        link_stop(p->link);
    else if (event == LINK_STOPS)
        note(p, 0, "start: %d", link_start(p->link));
}

static void link_stopped_within(struct play *p)
{
    echo_peer(p, 0);
    p->then = stop_then;
    start_link(p);
    for (unsigned i = 0; i < 4; i++) {
        run(p, 1);
        cut(p, 0, i & 1 ? LINK_RESET : LINK_CLOSED_BY_PEER);
    }
    run(p, 2);
}

static void free_link_then(struct play *p, enum event event)
{
    if (event == LINK_IS_DOWN) {
        link_free(p->link);
        p->link = NULL;
    }
}

static void link_freed_within(struct play *p)
{
    echo_peer(p, 0);
    p->then = free_link_then;
    start_link(p);
    run(p, 1);
    cut(p, 0, LINK_RESET);
    run(p, 1);
}

static void few_attempts(struct play *p)
{
    p->backoff = backoff_linkd;
    p->backoff.max_attempts = 4;
    p->host.protocol = &fake_session;
}

static void link_gives_up(struct play *p)
{
    peer(p, 0, TESTING_SILENT);
    start_link(p);
    run(p, 60);
    behave(p, 0, TESTING_ACCEPT);
    p->stage->echo(p->stage, 0, true);
    note(p, 0, "start: %d", link_start(p->link));
    run(p, 1);
}

/* Two drivers on one loop, each with its alarm and its end of turn. */
static void link_beside_a_pool(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.013, 0);
    start_link(p);
    for (unsigned i = 0; i < 4; i++) {
        run(p, 0.3);
        ask(p, i, 0);
        run(p, 0.3);
        give_back(p, i);
    }
    run(p, 12);
    behave(p, 0, TESTING_REFUSE);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 3);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 3);
    free_pool(p);
    run(p, 1);
    link_says(p, "still here");
    run(p, 1);
}

const struct scenario scenarios_edge[] = {
    {.name = "leap while idle", .play = leap_while_idle},
    {.name = "leap while connecting", .play = leap_while_connecting},
    {.name = "leap over an answer", .play = leap_over_an_answer},
    {.name = "leap in a backoff", .play = leap_in_backoff},
    {.name = "leap before an acquire", .play = leap_before_an_acquire},
    {.name = "quiet hour", .play = quiet_hour},
    {.name = "busy when told", .play = busy_when_told},
    {.name = "asks after being busy", .play = asks_after_being_busy, .tcp_only = true},
    {.name = "busy timer", .play = busy_timer},
    {.name = "ready with the deadline", .options = as_its_deadline_passes, .play = ready_with_the_deadline},
    {.name = "handshake with the deadline", .options = quarter, .play = handshake_with_the_deadline},
    {.name = "returned with the deadline", .options = one_link, .play = returned_with_the_deadline},
    {.name = "work without waiting", .options = one_link, .play = work_without_waiting},
    {.name = "same number again", .play = same_number_again},
    {.name = "many at once", .play = many_at_once},
    {.name = "many die at once", .play = many_die_at_once},
    {.name = "free within done", .play = free_within_done},
    {.name = "free within readable", .play = free_within_readable},
    {.name = "free within closed within drain", .play = free_within_closed},
    {.name = "free while all is under way", .play = free_while_all_is_under_way},
    {.name = "free in the turn that asked", .play = free_in_the_call_that_asked},
    {.name = "link reconnects", .play = link_reconnects, .alone = true},
    {.name = "link waits ever longer", .options = edge_box, .play = link_waits_ever_longer, .alone = true,
        .tcp_only = true},
    {.name = "link stopped within callbacks", .play = link_stopped_within, .alone = true},
    {.name = "link freed within callbacks", .play = link_freed_within, .alone = true},
    {.name = "link gives up", .options = few_attempts, .play = link_gives_up, .alone = true},
    {.name = "link beside a pool", .play = link_beside_a_pool},
    {0},
};
