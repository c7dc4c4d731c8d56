/* scenes_wait.c - connecting, waiting, time-outs, cancelling. */
#include <math.h>

#include "tests/fakes/session.h"
#include "tests/sim/seam/play.h"

static void one_link(struct play *p)
{
    p->host.max_links = 1;
}

static void shakes_hands(struct play *p)
{
    p->host.protocol = &fake_session;
}

static void give_back_then(struct user *user, enum event event)
{
    if (event == TOLD && user->lease.channel)
        give_back(user->play, user->i);
}

static void connects(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    expect(p, 0, POOL_READY, LINK_NO_REASON);
    exchange(p, 0);
    give_back(p, 0);
    run(p, 0.1);
    ask(p, 1, 0);
    give_back(p, 1);
    run(p, 1);
}

static void connects_late(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.25, 0);
    ask(p, 0, 0);
    run(p, 0.2);
    look(p);
    run(p, 0.2);
    look(p);
    give_back(p, 0);
    run(p, 1);
}

static void refused(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    ask(p, 0, 0);
    run(p, 0.1);
    expect(p, 0, LINKPOOL_EUNAVAILABLE, LINK_REFUSED);
    look(p);
    ask(p, 1, 0);
    run(p, 5);
    look(p);
}

static void refused_then_accepted(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    p->users[0].lease.flags = POOL_WAIT_FOR_READY;
    p->users[0].lease.timeout = 30;
    p->users[0].then = give_back_then;
    ask(p, 0, 0);
    run(p, 3.3);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 5);
    look(p);
}

static void nobody_there(struct play *p)
{
    for (unsigned i = 0; i < 3; i++)
        ask(p, i, 0);
    run(p, 3);
}

static void unreachable(struct play *p)
{
    peer(p, 0, TESTING_UNREACHABLE);
    peer(p, 1, TESTING_NO_HOST);
    delay(p, 1, 0.75, 0);
    ask(p, 0, 0);
    ask(p, 1, 1);
    run(p, 4);
    expect(p, 0, LINKPOOL_EUNAVAILABLE, LINK_UNREACHABLE);
    expect(p, 1, LINKPOOL_EUNAVAILABLE, LINK_UNREACHABLE);
    look(p);
}

static void black_hole(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    p->users[0].lease.timeout = 10;
    ask(p, 0, 0);
    run(p, 2.9);
    must(p, p->users[0].waits, "a black hole says nothing");
    look(p);
    run(p, 7);
    expect(p, 0, LINKPOOL_EUNAVAILABLE, LINK_TIMED_OUT);
    look(p);
}

static void patient(struct play *p)
{
    p->host.connect_timeout = 200;
}

static void black_hole_kernel_gives_up(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    p->users[0].lease.timeout = 300;
    ask(p, 0, 0);
    run(p, 126);
    look(p);
    run(p, 10);
}

static void black_hole_opens(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    ask(p, 0, 0);
    run(p, 0.025);
    behave(p, 0, TESTING_ACCEPT);
    run(p, 2);
    expect(p, 0, POOL_READY, LINK_NO_REASON);
    give_back(p, 0);
    run(p, 1);
}

static void handshake(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.01, 0.5);
    ask(p, 0, 0);
    run(p, 0.3);
    look(p);
    run(p, 0.5);
    give_back(p, 0); /* is cleaned first */
    run(p, 0.2);
    look(p);
    run(p, 2);
    look(p);
}

static void handshake_never(struct play *p)
{
    peer(p, 0, TESTING_SILENT);
    p->users[0].lease.timeout = 1.5;
    ask(p, 0, 0);
    ask(p, 1, 0);
    run(p, 2);
    run(p, 8);
    look(p);
}

static void handshake_wrong(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT);
    greet(p, 0, "no");
    ask(p, 0, 0);
    run(p, 2);
    ask(p, 1, 0);
    run(p, 5);
}

static void handshake_closed(struct play *p)
{
    peer(p, 0, TESTING_ACCEPT_AND_CLOSE);
    delay(p, 0, 0, 0.4);
    ask(p, 0, 0);
    run(p, 2);
    expect(p, 0, LINKPOOL_EUNAVAILABLE, LINK_CLOSED_BY_PEER);
    behave(p, 0, TESTING_ACCEPT_AND_RESET);
    ask(p, 1, 0);
    run(p, 2);
    expect(p, 1, LINKPOOL_EUNAVAILABLE, LINK_RESET);
    look(p);
}

static void cleaning_never(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    p->stage->echo(p->stage, 0, false);
    give_back(p, 0);
    ask(p, 1, 0);
    run(p, 2);
    look(p);
    run(p, 9);
    look(p);
}

static void wait_times_out(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    p->users[1].lease.timeout = 0.5;
    ask(p, 1, 0);
    ask(p, 2, 0); /* the default */
    p->users[3].lease.timeout = INFINITY;
    ask(p, 3, 0);
    run(p, 4);
    run(p, 20);
    give_back(p, 0);
    run(p, 1);
    give_back(p, 3);
    run(p, 1);
}

static void hands_over(struct play *p)
{
    echo_peer(p, 0);
    for (unsigned i = 0; i < 6; i++) {
        p->users[i].then = give_back_then;
        ask(p, i, 0);
    }
    run(p, 1);
}

static void cancel_while_connecting(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0.3, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    cancel(p, 0);
    run(p, 1);
    look(p);
    ask(p, 1, 0);
    run(p, 0.1);
    cancel(p, 1);
    discard(p, 1);
    run(p, 1);
}

static void cancel_in_handshake(struct play *p)
{
    echo_peer(p, 0);
    delay(p, 0, 0, 0.3);
    ask(p, 0, 0);
    run(p, 0.1);
    cancel(p, 0);
    run(p, 1);
    look(p);
}

static void cancel_next_then(struct user *user, enum event event)
{
    if (event == TOLD)
        cancel(user->play, user->i + 1);
}

static void cancel_of_a_winner(struct play *p)
{
    echo_peer(p, 0);
    p->users[0].then = cancel_next_then;
    for (unsigned i = 0; i < 3; i++)
        ask(p, i, 0);
    run(p, 1);
    look(p);
    for (unsigned i = 0; i < 3; i++)
        give_back(p, i);
    run(p, 1);
}

static void cancel_within_the_turn(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    cancel(p, 0);
    ask(p, 1, 0);
    ask(p, 0, 0);
    cancel(p, 0);
    run(p, 1);
    give_back(p, 1);
    ask(p, 0, 0);
    run(p, 1);
}

static void many_deadlines_in_one_turn(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 100, 0);
    run(p, 0.1);
    for (unsigned i = 0; i < 100; i++) {
        p->users[i].lease.timeout = 2;
        ask(p, i, 0);
    }
    run(p, 2.5);
    look(p);
    give_back(p, 100);
    run(p, 3);
}

static void deadlines_within_a_millisecond(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    for (unsigned i = 0; i < 40; i++) {
        p->users[i].lease.timeout = 1 + 1e-5 * ((i * 17) % 40);
        ask(p, i, 0);
    }
    run(p, 2);
}

static void deadlines_spread(struct play *p)
{
    echo_peer(p, 0);
    ask(p, 0, 0);
    run(p, 0.1);
    for (unsigned i = 1; i < 60; i++) {
        p->users[i].lease.timeout = 0.05 * i;
        ask(p, i, 0);
    }
    for (unsigned i = 2; i < 60; i += 3)
        cancel(p, i);
    run(p, 2.02);
    give_back(p, 0);
    run(p, 2);
}

/* An alarm that is moved away must still ring for what is next, and one that is moved near must ring sooner. */
static void deadlines_ever_sooner(struct play *p)
{
    peer(p, 0, TESTING_BLACK_HOLE);
    for (unsigned i = 0; i < 8; i++) {
        p->users[i].lease.timeout = 2.9 - 0.3 * i;
        ask(p, i, 0);
        run(p, 0.01);
    }
    for (unsigned i = 7; i > 4; i--)
        cancel(p, i);
    run(p, 4);
}

static void fails_fast(struct play *p)
{
    peer(p, 0, TESTING_REFUSE);
    ask(p, 0, 0);
    run(p, 0.05);
    for (unsigned i = 1; i < 5; i++)
        ask(p, i, 0);
    look(p);
    run(p, 1);
    look(p);
    run(p, 30);
    look(p);
    ask(p, 5, 0);
    run(p, 1);
}

const struct scenario scenarios_wait[] = {
    {.name = "connects", .play = connects},
    {.name = "connects late", .play = connects_late},
    {.name = "refused", .play = refused},
    {.name = "refused, then accepted", .play = refused_then_accepted},
    {.name = "nobody there", .play = nobody_there},
    {.name = "unreachable", .play = unreachable, .tcp_only = true},
    {.name = "black hole", .play = black_hole},
    {.name = "black hole until the kernel gives up",
        .options = patient,
        .play = black_hole_kernel_gives_up,
        .tcp_only = true},
    {.name = "black hole that opens", .play = black_hole_opens},
    {.name = "handshake", .options = shakes_hands, .play = handshake},
    {.name = "handshake that never ends", .options = shakes_hands, .play = handshake_never},
    {.name = "handshake that goes wrong", .options = shakes_hands, .play = handshake_wrong},
    {.name = "handshake that is hung up on", .options = shakes_hands, .play = handshake_closed},
    {.name = "cleaning that never ends", .options = shakes_hands, .play = cleaning_never},
    {.name = "wait times out", .options = one_link, .play = wait_times_out},
    {.name = "hands over", .options = one_link, .play = hands_over},
    {.name = "cancel while connecting", .play = cancel_while_connecting},
    {.name = "cancel in the handshake", .options = shakes_hands, .play = cancel_in_handshake},
    {.name = "cancel of a winner", .play = cancel_of_a_winner},
    {.name = "cancel within the turn", .options = one_link, .play = cancel_within_the_turn},
    {.name = "many deadlines in one turn", .options = one_link, .play = many_deadlines_in_one_turn},
    {.name = "deadlines within a millisecond", .play = deadlines_within_a_millisecond},
    {.name = "deadlines spread", .options = one_link, .play = deadlines_spread},
    {.name = "deadlines ever sooner", .play = deadlines_ever_sooner},
    {.name = "fails fast", .play = fails_fast},
    {0},
};
