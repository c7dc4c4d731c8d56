/* scenes_end.c - frees from within callbacks, and links on their own. */
#include "tests/fakes/session.h"
#include "tests/sim/seam/play.h"

static void hold(struct play *p, unsigned user, unsigned of)
{
    ask(p, user, of);
    run(p, 0.05);
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

/* What was set for a deadline that has been met rings once, for nothing; then the loop may end. */
static void loop_ends(struct play *p)
{
    peer(p, 0, TESTING_SILENT);
    start_link(p);
    run(p, 0.5);
    note_waits(p);
    link_stop(p->link);
    run(p, 10);
    note_waits(p);
    note(p, 0, "start: %d", link_start(p->link));
    run(p, 60);
    note(p, 0, "is %s", link_state_name(link_state(p->link)));
    note_waits(p);
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

const struct scenario scenarios_end[] = {
    {.name = "free within done", .play = free_within_done},
    {.name = "free within readable", .play = free_within_readable},
    {.name = "free within closed within drain", .play = free_within_closed},
    {.name = "free while all is under way", .play = free_while_all_is_under_way},
    {.name = "free in the turn that asked", .play = free_in_the_call_that_asked},
    {.name = "link reconnects", .play = link_reconnects, .alone = true},
    {.name = "link waits ever longer",
        .options = edge_box,
        .play = link_waits_ever_longer,
        .alone = true,
        .tcp_only = true},
    {.name = "link stopped within callbacks", .play = link_stopped_within, .alone = true},
    {.name = "link freed within callbacks", .play = link_freed_within, .alone = true},
    {.name = "loop ends", .options = few_attempts, .play = loop_ends, .alone = true},
    {.name = "link gives up", .options = few_attempts, .play = link_gives_up, .alone = true},
    {.name = "link beside a pool", .play = link_beside_a_pool},
    {0},
};
