/* testing_peer_loop.c - the same peers on a real loop, met by plain sockets of the system. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/address.h"
#include "linkpool/testing.h"

enum {
    DEADLINE = 20
}; /* seconds: a test that hangs ends; none waits for it */

static struct ev_loop *loop;

struct client {
    ev_io io;
    int fd;
    char text[256];
    size_t n;
    int error; /* of the connect or the read; -1: end of file */
    bool up;
};

static void set_up(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
}

static void tear_down(void)
{
    ev_loop_destroy(loop);
}

TestSuite(testing_peer_loop, .init = set_up, .fini = tear_down, .timeout = DEADLINE);

static void on_client(struct ev_loop *l, ev_io *io, int events)
{
    struct client *c = (struct client *)io;
    socklen_t size = sizeof c->error;
    ssize_t n;

    (void)events;
    if (!c->up) {
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &c->error, &size);
        c->up = c->error == 0;
        ev_io_stop(l, io);
        ev_io_set(io, c->fd, EV_READ);
        if (c->up)
            ev_io_start(l, io);
        return;
    }
    n = recv(c->fd, c->text + c->n, sizeof c->text - 1 - c->n, 0);
    if (n > 0) {
        c->n += (size_t)n;
        return;
    }
    c->error = n == 0 ? -1 : errno;
    ev_io_stop(l, io);
}

static int dial(struct client *c, const struct testing_peer *peer)
{
    struct link_address address;
    const char *text = testing_peer_address(peer);
    int error = 0;

    cr_assert(eq(int, link_address_parse(text, strlen(text), &address, NULL, 0), 0));
    memset(c, 0, sizeof *c);
    c->fd = socket(address.name.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect(c->fd, &address.name.any, address.size) != 0)
        error = errno;
    ev_io_init(&c->io, on_client, c->fd, EV_WRITE);
    ev_io_start(loop, &c->io);
    return error;
}

static void hang_up(struct client *c)
{
    ev_io_stop(loop, &c->io);
    close(c->fd);
}

static bool (*reached)(void);
static struct client c;
static struct testing_peer *peer;

static void on_check(struct ev_loop *l, ev_check *check, int events)
{
    (void)check, (void)events;
    if (reached())
        ev_break(l, EVBREAK_ONE);
}

static void on_tick(struct ev_loop *l, ev_timer *tick, int events)
{
    (void)l, (void)tick, (void)events; /* wakes the loop so that `reached` is asked */
}

static void run_until(bool (*what)(void))
{
    ev_check check;
    ev_timer tick;

    reached = what;
    ev_check_init(&check, on_check);
    ev_set_priority(&check, EV_MINPRI);
    ev_check_start(loop, &check);
    ev_timer_init(&tick, on_tick, 0.001, 0.001);
    ev_timer_start(loop, &tick);
    if (!what())
        ev_run(loop, 0);
    ev_check_stop(loop, &check);
    ev_timer_stop(loop, &tick);
}

static bool is_up(void)
{
    return c.up;
}

static bool has_heard(void)
{
    return c.n > 0;
}

static bool is_over(void)
{
    return c.error != 0;
}

static bool is_accepted(void)
{
    return testing_peer_accepted(peer) > 0;
}

static bool none_open(void)
{
    return testing_peer_accepted(peer) > 0 && testing_peer_open(peer) == 0;
}

static void stand(const char *address, enum testing_behaviour behaviour)
{
    peer = testing_peer_on_loop(loop, address, behaviour);
    cr_assert(not(zero(ptr, peer)), "%s", strerror(errno));
}

Test(testing_peer_loop, the_system_picks_a_port_and_the_peer_answers)
{
    size_t n;

    stand("127.0.0.1:0", TESTING_ACCEPT);
    cr_assert(ne(str, (char *)(uintptr_t)testing_peer_address(peer), "127.0.0.1:0"));
    testing_peer_serve(peer, testing_echo, NULL);
    testing_peer_greet(peer, "hi ", 3);
    testing_peer_delay(peer, 0.001, 0.001);
    dial(&c, peer);
    run_until(has_heard);
    cr_assert(eq(str, c.text, "hi "));
    c.n = 0;
    cr_assert(eq(i64, send(c.fd, "hello", 5, MSG_NOSIGNAL), 5));
    run_until(has_heard);
    cr_assert(eq(int, memcmp(c.text, "hello", 5), 0));
    cr_assert(eq(int, memcmp(testing_peer_received(peer, &n), "hello", 5), 0));
    hang_up(&c);
    run_until(none_open);
    testing_peer_free(peer);
}

Test(testing_peer_loop, ends_in_order_and_by_reset)
{
    stand("127.0.0.1:0", TESTING_ACCEPT_AND_CLOSE);
    dial(&c, peer);
    run_until(is_over);
    cr_assert(eq(int, c.error, -1));
    hang_up(&c);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_RESET);
    dial(&c, peer);
    run_until(is_over);
    cr_assert(eq(int, c.error, ECONNRESET));
    hang_up(&c);
    testing_peer_free(peer);
}

Test(testing_peer_loop, refuses_and_comes_back_at_the_same_port)
{
    struct client first;

    stand("127.0.0.1:0", TESTING_ACCEPT);
    dial(&c, peer);
    run_until(is_accepted);
    first = c;
    ev_io_stop(loop, &c.io);
    cr_assert(eq(int, testing_peer_behave(peer, TESTING_REFUSE), 0));
    if (dial(&c, peer) != ECONNREFUSED) {
        run_until(is_over);
        cr_assert(eq(int, c.error, ECONNREFUSED));
    }
    hang_up(&c);
    cr_assert(eq(int, testing_peer_behave(peer, TESTING_ACCEPT), 0));
    dial(&c, peer);
    run_until(is_up);
    hang_up(&c);
    close(first.fd);
    testing_peer_free(peer);
}

static unsigned ticks;

static bool after_a_while(void)
{
    return ++ticks > 50;
}

Test(testing_peer_loop, a_black_hole_never_answers)
{
    stand("127.0.0.1:0", TESTING_BLACK_HOLE);
    cr_assert(eq(int, dial(&c, peer), EINPROGRESS));
    ticks = 0;
    run_until(after_a_while);
    cr_assert(not(c.up));
    cr_assert(eq(int, c.error, 0));
    hang_up(&c);
    testing_peer_free(peer);
}

Test(testing_peer_loop, unix_peers_too)
{
    char path[64];

    snprintf(path, sizeof path, "unix:@linkpool-test-%ld", (long)getpid());
    stand(path, TESTING_ACCEPT);
    testing_peer_serve(peer, testing_echo, NULL);
    cr_assert(eq(int, dial(&c, peer), 0));
    cr_assert(eq(i64, send(c.fd, "x", 1, MSG_NOSIGNAL), 1));
    run_until(has_heard);
    hang_up(&c);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, dial(&c, peer), EAGAIN));
    hang_up(&c);
    testing_peer_free(peer);
}

static bool all_said(void)
{
    return testing_peer_conn(peer, 0) && testing_conn_sent(testing_peer_conn(peer, 0)) == 4u << 20;
}

static void on_gulp(struct ev_loop *l, ev_io *io, int events)
{
    static char gulp[1 << 16];

    (void)l, (void)events;
    ((struct client *)io)->up = true;
    if (recv(((struct client *)io)->fd, gulp, sizeof gulp, 0) == 0)
        ev_io_stop(l, io);
}

Test(testing_peer_loop, a_long_answer_waits_for_its_reader)
{
    static char answer[4 << 20];

    stand("127.0.0.1:0", TESTING_ACCEPT);
    dial(&c, peer);
    run_until(is_accepted);
    ev_io_stop(loop, &c.io);
    testing_peer_say(peer, answer, sizeof answer);
    ticks = 0;
    run_until(after_a_while);
    cr_assert(not(all_said()));
    ev_set_cb(&c.io, on_gulp);
    ev_io_set(&c.io, c.fd, EV_READ);
    ev_io_start(loop, &c.io);
    run_until(all_said);
    hang_up(&c);
    testing_peer_free(peer);
}

Test(testing_peer_loop, a_window_and_silence_hold_the_client_up)
{
    static char block[1 << 16];

    stand("127.0.0.1:0", TESTING_ACCEPT);
    testing_peer_window(peer, 1000);
    dial(&c, peer);
    run_until(is_accepted);
    cr_assert(lt(i64, 1000, send(c.fd, block, sizeof block, MSG_NOSIGNAL)));
    ticks = 0;
    run_until(after_a_while);
    cr_assert(eq(u64, testing_peer_bytes(peer), 1000));
    testing_peer_cut(peer, LINK_TIMED_OUT);
    run_until(none_open);
    cr_assert(eq(int, c.error, 0));
    hang_up(&c);
    testing_peer_free(peer);
}

static void gone(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    (void)data, (void)bytes, (void)n;
    testing_peer_free(testing_conn_peer(conn));
}

Test(testing_peer_loop, a_peer_may_go_inside_its_own_callbacks)
{
    struct testing_server server = {.size = sizeof server, .received = gone};

    stand("127.0.0.1:0", TESTING_ACCEPT);
    testing_peer_on(peer, &server);
    dial(&c, peer);
    run_until(is_up);
    cr_assert(eq(i64, send(c.fd, "x", 1, MSG_NOSIGNAL), 1));
    run_until(is_over);
    cr_assert(eq(int, c.error, ECONNRESET));
    hang_up(&c);
}

Test(testing_peer_loop, an_address_in_use_says_so)
{
    struct testing_peer *second;

    stand("127.0.0.1:0", TESTING_ACCEPT);
    second = testing_peer_on_loop(loop, testing_peer_address(peer), TESTING_ACCEPT);
    cr_assert(zero(ptr, second));
    cr_assert(eq(int, errno, EADDRINUSE));
    cr_assert(zero(ptr, testing_peer_on_loop(loop, "here", TESTING_ACCEPT)));
    cr_assert(eq(int, errno, EINVAL));
    testing_peer_free(peer);
}
