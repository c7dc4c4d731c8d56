/* scenes_bytes.c - bytes: whole, in part, paused, unasked for, cut off; and streams that share a link. */
#include <stddef.h>

#include "tests/fakes/shared.h"
#include "tests/sim/seam/play.h"

static void hold(struct play *p, unsigned user)
{
    ask(p, user, 0);
    run(p, 0.05);
}

static void discard_then(struct user *user, enum event event)
{
    if (event == ENDED)
        discard(user->play, user->i);
}

static void one_link(struct play *p)
{
    p->host.max_links = 1;
}

static void answers(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0, 0.2);
    hold(p, 0);
    listen_to(p, 0);
    for (unsigned i = 0; i < 5; i++) {
        say(p, 0, "hello");
        run(p, 0.1);
    }
    run(p, 0.5);
    give_back(p, 0);
    run(p, 0.5);
    expect_idle(p, 0, 1, LINK_NO_REASON);
    look(p);
}

static void greeted(struct play *p)
{
    echo_peer(p, 0);
    greet(p, 0, "welcome");
    p->users[0].reads = true;
    hold(p, 0);
    run(p, 0.5);
    give_back(p, 0);
    delay(p, 0, 0, 0.5);
    ask(p, 1, 0); /* the same link */
    hold(p, 2);   /* another: its greeting comes when nobody has it */
    give_back(p, 2);
    run(p, 1);
    look(p);
}

static void bytes_while_idle(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    exchange(p, 0);
    give_back(p, 0);
    run(p, 0.5);
    peer_says(p, 0, "unasked");
    run(p, 0.5);
    expect_idle(p, 0, 0, LINK_NO_REASON);
    look(p);
    hold(p, 1);
    give_back(p, 1);
}

static void bytes_left_unread(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    say(p, 0, "question");
    run(p, 0.1); /* the answer is there, and nobody reads it */
    give_back(p, 0);
    ask(p, 1, 0);
    run(p, 0.5);
    look(p);
    give_back(p, 1);
    run(p, 0.5);
}

static void sent_last(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    hold(p, 0);
    say(p, 0, "a wish");
    give_back(p, 0);
    run(p, 0.5);
    look(p);
}

static void last_words(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    greet(p, 0, "unread");
    hold(p, 0);
    say(p, 0, "last words"); /* arrive, though the close that follows is a reset */
    discard(p, 0);
    run(p, 1);
}

static void says_after_a_reset(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    exchange(p, 0);
    cut(p, 0, LINK_RESET);
    say(p, 0, "anybody?");
    run(p, 1);
    discard(p, 0);
    run(p, 1);
    look(p);
}

static void late_answer(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    exchange(p, 0);
    delay(p, 0, 0, 0.3);
    say(p, 0, "late");
    run(p, 0.1);
    discard(p, 0);
    run(p, 1);
    expect_idle(p, 0, 0, LINK_NO_REASON);
    look(p);
}

static void paused(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    listen_to(p, 0);
    want(p, 0, 0);
    say(p, 0, "first");
    run(p, 0.5);
    say(p, 0, " second");
    run(p, 0.5);
    want(p, 0, LINKPOOL_READ);
    run(p, 0.5);
    want(p, 0, 0);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 0.5);
    want(p, 0, LINKPOOL_READ);
    run(p, 0.5);
    discard(p, 0);
    run(p, 0.5);
}

static void wants_to_write(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    hold(p, 0);
    listen_to(p, 0);
    want(p, 0, LINKPOOL_READ | LINKPOOL_WRITE); /* rings at once: there is room, and all is sent */
    p->users[0].then = NULL;
    run(p, 0.1);
    discard(p, 0);
    run(p, 0.1);
}

static void partial_writes(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    window(p, 0, 100000);
    hold(p, 0);
    send_much(p, 0, 1000000);
    run(p, 1);
    window(p, 0, 500000);
    run(p, 1);
    window(p, 0, SIZE_MAX);
    run(p, 1);
    say(p, 0, "more");
    run(p, 1);
    discard(p, 0);
    run(p, 1);
}

static void both_ways(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    p->users[0].counts_only = true;
    send_much(p, 0, 3000000);
    run(p, 2);
    note(p, 0, "heard %zu", p->users[0].heard);
    give_back(p, 0);
    run(p, 1);
    look(p);
}

static void stuck_write_is_reset(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    window(p, 0, 0);
    p->users[0].then = discard_then;
    hold(p, 0);
    send_much(p, 0, 1000000);
    run(p, 1);
    cut(p, 0, LINK_RESET);
    run(p, 1);
    look(p);
}

static void half_closes(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0, 0.2);
    hold(p, 0);
    listen_to(p, 0);
    say(p, 0, "last words");
    note(p, 0, "shutdown: %d", channel_shutdown(p->users[0].lease.channel));
    run(p, 1);
    give_back(p, 0);
    run(p, 1);
    look(p);
}

static void closes_while_leased(struct play *p)
{
    echo_peer(p, 0);
    p->users[0].reads = p->users[1].reads = true;
    p->users[0].then = discard_then;
    hold(p, 0);
    hold(p, 1);
    run(p, 15);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    run(p, 1);
    look(p);
    give_back(p, 1); /* who kept it after its end */
    ask(p, 2, 0);
    run(p, 2);
    look(p);
}

static void resets_while_leased(struct play *p)
{
    echo_peer(p, 0);
    p->users[0].reads = true;
    hold(p, 0);
    hold(p, 1); /* does not listen */
    say(p, 0, "?");
    run(p, 0.5);
    cut(p, 0, LINK_RESET);
    run(p, 1);
    look(p);
    discard(p, 0);
    give_back(p, 1);
    run(p, 3);
    look(p);
}

static void cut_in_an_answer(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    p->users[0].reads = true;
    hold(p, 0);
    say(p, 0, "question");
    run(p, 0.1);
    peer_says(p, 0, "half an ans");
    run(p, 0.1);
    cut(p, 0, LINK_RESET);
    run(p, 0.5);
    discard(p, 0);
    run(p, 1);
    look(p);
}

static void silence(struct play *p)
{
    echo_peer(p, 0);
    p->users[0].reads = true;
    hold(p, 0);
    exchange(p, 0);
    cut(p, 0, LINK_TIMED_OUT);
    say(p, 0, "anybody?");
    run(p, 30);
    discard(p, 0);
    run(p, 1);
}

static void end_with_an_acquire(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    exchange(p, 0);
    give_back(p, 0);
    run(p, 1);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    p->users[1].reads = true;
    p->users[1].then = discard_then;
    ask(p, 1, 0); /* the loop has not seen it yet */
    run(p, 1);
    look(p);
}

static void handed_on_with_its_end(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    say(p, 0, "question");
    run(p, 0.1);
    ask(p, 1, 0);
    listen_to(p, 0);
    run(p, 0.01);
    cut(p, 0, LINK_CLOSED_BY_PEER);
    give_back(p, 0);
    run(p, 1);
    look(p);
}

static void lends_its_descriptor(struct play *p)
{
    echo_peer(p, 0);
    hold(p, 0);
    note(p, 0, "has one: %d", channel_fd(p->users[0].lease.channel) >= 0);
    give_back(p, 0);
    ask(p, 1, 0); /* looked at before it is handed on */
    run(p, 0.1);
    give_back(p, 1);
    run(p, 0.1);
}

/* ---- one holder changes what another waits for, when both are ready ---- */

static void two_hold(struct play *p)
{
    echo_peer(p, 0);
    echo_peer(p, 1);
    p->users[0].reads = p->users[1].reads = true;
    ask(p, 0, 0);
    ask(p, 1, 1);
    run(p, 0.1);
}

static void pause_other_then(struct user *user, enum event event)
{
    if (event == HEARD)
        want(user->play, 1, 0);
}

static void paused_by_another(struct play *p)
{
    two_hold(p);
    p->users[0].then = pause_other_then;
    peer_says(p, 0, "to the first");
    peer_says(p, 1, "to the second");
    run(p, 0.5);
    want(p, 1, LINKPOOL_READ);
    run(p, 0.5);
}

static void resume_other_then(struct user *user, enum event event)
{
    if (event != HEARD)
        return;
    want(user->play, 1, 0);
    want(user->play, 1, LINKPOOL_READ);
    ask(user->play, 2, 1); /* is told at the end of the turn, after the other has heard */
}

static void paused_and_resumed_by_another(struct play *p)
{
    two_hold(p);
    ask(p, 2, 1);
    run(p, 0.1);
    give_back(p, 2);
    p->users[0].then = resume_other_then;
    peer_says(p, 0, "to the first");
    peer_says(p, 1, "to the second");
    run(p, 0.5);
}

static void give_back_other_then(struct user *user, enum event event)
{
    if (event != ENDED)
        return;
    give_back(user->play, 1);
    ask(user->play, 2, 1);
}

/* The end that came with this poll is seen before the link is handed on at the end of the turn. */
static void given_back_by_another_with_its_end(struct play *p)
{
    two_hold(p);
    p->users[0].then = give_back_other_then;
    cut(p, 0, LINK_CLOSED_BY_PEER);
    want(p, 1, LINKPOOL_READ | LINKPOOL_WRITE); /* so that the return changes it */
    cut(p, 1, LINK_CLOSED_BY_PEER);
    ask(p, 3, 1);
    run(p, 0.5);
    look(p);
}

/* ---- several on a link ---- */

static void shares(struct play *p)
{
    p->host.protocol = &fake_shared;
    p->host.max_links = 2;
}

static void streams(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 4; i++) {
        p->users[i].reads = true;
        hold(p, i);
    }
    for (unsigned i = 0; i < 4; i++) {
        say(p, i, "s");
        run(p, 0.01);
    }
    give_back(p, 1);
    ask(p, 5, 0);
    run(p, 0.5);
    look(p);
}

static void streams_are_cut(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 3; i++) {
        p->users[i].reads = true;
        hold(p, i);
    }
    say(p, 0, "s");
    run(p, 12);
    say(p, 1, "s");
    cut(p, 0, LINK_RESET);
    run(p, 1);
    look(p);
    ask(p, 4, 0);
    run(p, 2);
    look(p);
}

static void streams_drain(struct play *p)
{
    struct pool_host *of;

    echo_peer(p, 0);
    of = host(p, 0);
    for (unsigned i = 0; i < 3; i++)
        hold(p, i);
    note(p, 0, "recycle: %d", pool_host_recycle(of, 0));
    run(p, 1);
    look(p);
    ask(p, 3, 0);
    run(p, 1);
    give_back(p, 0);
    give_back(p, 1);
    run(p, 40); /* longer than those out may last */
    look(p);
    pool_host_drop(of);
}

const struct scenario scenarios_bytes[] = {
    {.name = "answers", .play = answers},
    {.name = "greeted", .play = greeted},
    {.name = "bytes while idle", .play = bytes_while_idle},
    {.name = "bytes left unread", .options = one_link, .play = bytes_left_unread},
    {.name = "sent last", .play = sent_last},
    {.name = "last words", .play = last_words},
    {.name = "says after a reset", .play = says_after_a_reset},
    {.name = "answer after a discard", .play = late_answer},
    {.name = "paused reads", .play = paused},
    {.name = "wants to write", .play = wants_to_write},
    {.name = "partial writes", .play = partial_writes},
    {.name = "both ways at once", .play = both_ways},
    {.name = "reset of a write that is stuck", .play = stuck_write_is_reset},
    {.name = "half-close", .play = half_closes},
    {.name = "peer closes while leased", .play = closes_while_leased},
    {.name = "peer resets while leased", .play = resets_while_leased},
    {.name = "reset in the middle of an answer", .play = cut_in_an_answer},
    {.name = "silence", .play = silence, .tcp_only = true},
    {.name = "end of file with an acquire", .play = end_with_an_acquire},
    {.name = "handed on with its end", .options = one_link, .play = handed_on_with_its_end},
    {.name = "lends its descriptor", .options = one_link, .play = lends_its_descriptor},
    {.name = "paused by another", .play = paused_by_another},
    {.name = "paused and resumed by another", .play = paused_and_resumed_by_another},
    {.name = "given back by another with its end", .options = one_link, .play = given_back_by_another_with_its_end},
    {.name = "streams", .options = shares, .play = streams},
    {.name = "streams are cut", .options = shares, .play = streams_are_cut},
    {.name = "streams drain", .options = shares, .play = streams_drain},
    {0},
};
