/* testing_network.c - the fake network: sockets as Linux has them, peers as they are scripted, faults as they are
 * ordered. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "link/address.h"
#include "linkpool/error.h"
#include "linkpool/testing.h"

struct client { /* a socket with a watcher on it */
    struct driver_io io;
    const struct linkpool_env *env;
    struct driver *driver;
    int fd;
    unsigned events, runs;
};

static struct testing *t;
static const struct linkpool_env *env;
static struct driver *driver;

static void set_up(void)
{
    t = testing_new(1);
    env = testing_env(t);
    driver = testing_driver(t);
}

static void tear_down(void)
{
    cr_expect(eq(uint, testing_misuses(t), 0), "%s", testing_last_misuse(t));
    cr_expect(eq(uint, testing_open_descriptors(t), 0));
    driver_free(driver);
    testing_free(t);
}

TestSuite(testing_network, .init = set_up, .fini = tear_down);

static void on_events(struct driver_io *io, unsigned events)
{
    struct client *c = (struct client *)io;

    c->events |= events;
    c->runs++;
    driver->ops->io_events(driver, io, 0); /* one look is enough */
}

static struct link_address parsed(const char *text)
{
    struct link_address address;

    cr_assert(eq(int, link_address_parse(text, strlen(text), &address, NULL, 0), 0));
    return address;
}

static int try_connect(int fd, const char *text)
{
    struct link_address address = parsed(text);

    return env->connect(env->data, fd, &address.name.any, address.size);
}

static int open_for(const char *text)
{
    return env->socket(env->data, parsed(text).name.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void want(struct client *c, unsigned events)
{
    c->events = 0;
    driver->ops->io_events(driver, &c->io, events);
}

/** Begins to connect, and waits for what comes of it. */
static int dial(struct client *c, const char *text)
{
    int result;

    *c = (struct client){.io.on = on_events, .fd = open_for(text)};
    cr_assert(ge(int, c->fd, 1000));
    result = try_connect(c->fd, text) == 0 ? 0 : errno;
    driver->ops->io_start(driver, &c->io, c->fd, LINKPOOL_WRITE);
    return result;
}

static void hang_up(struct client *c)
{
    driver->ops->io_stop(driver, &c->io);
    cr_assert(eq(int, env->close(env->data, c->fd), 0));
}

static int pending_error(const struct client *c)
{
    int error = -1;
    socklen_t size = sizeof error;

    cr_assert(eq(int, env->getsockopt(env->data, c->fd, SOL_SOCKET, SO_ERROR, &error, &size), 0));
    return error;
}

static ssize_t hear(const struct client *c, char *text, size_t room, int flags)
{
    struct iovec part = {text, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return env->recvmsg(env->data, c->fd, &message, flags);
}

static ssize_t say_bytes(const struct client *c, const void *bytes, size_t n)
{
    struct iovec part = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return env->sendmsg(env->data, c->fd, &message, MSG_NOSIGNAL);
}

static ssize_t say(const struct client *c, const char *text)
{
    return say_bytes(c, text, strlen(text));
}

static void cr_hears(const struct client *c, const char *expected)
{
    char text[256] = "";

    cr_assert(eq(sz, (size_t)hear(c, text, sizeof text - 1, 0), strlen(expected)));
    cr_assert(eq(str, text, (char *)(uintptr_t)expected));
}

static void cr_fails(ssize_t result, int error)
{
    cr_assert(eq(i64, result, -1));
    cr_assert(eq(int, errno, error));
}

/** Connected, and the peer has accepted. */
static struct testing_peer *join(struct client *c, const char *text)
{
    struct testing_peer *peer = testing_peer_add(t, text, TESTING_ACCEPT);

    dial(c, text);
    testing_run_for(t, 0);
    cr_assert(eq(uint, c->events, LINKPOOL_WRITE));
    cr_assert(eq(int, pending_error(c), 0));
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    return peer;
}

Test(testing_network, a_connect_is_under_way_and_then_writable)
{
    struct client c;
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
    double start = testing_now(t);

    testing_peer_delay(peer, 0.25, 0);
    cr_assert(eq(int, dial(&c, "10.0.0.1:80"), EINPROGRESS));
    cr_fails(try_connect(c.fd, "10.0.0.1:80"), EALREADY);
    cr_fails(hear(&c, (char[4]){0}, 4, 0), EAGAIN);
    testing_run_for(t, 0.24);
    cr_assert(eq(uint, c.runs, 0));
    testing_run_for(t, 1);
    cr_assert(eq(uint, c.events, LINKPOOL_WRITE));
    cr_fails(try_connect(c.fd, "10.0.0.1:80"), EISCONN);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(dbl, testing_peer_attempt_at(peer, 0), start));
    cr_assert(isnan(testing_peer_attempt_at(peer, 1)));
    cr_assert(eq(str, (char *)(uintptr_t)testing_conn_client(testing_peer_conn(peer, 0)), "10.255.255.1:32768"));
    hang_up(&c);
    testing_run_for(t, 0);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
}

struct outcome {
    enum testing_behaviour behaviour;
    int at_once, error;
    double after;
};

Test(testing_network, connects_fail_as_on_linux)
{
    static const struct outcome outcomes[] = {
        {TESTING_REFUSE, EINPROGRESS, ECONNREFUSED, 0.5},
        {TESTING_NO_HOST, EINPROGRESS, EHOSTUNREACH, 0.5},
        {TESTING_BLACK_HOLE, EINPROGRESS, ETIMEDOUT, 127},
        {TESTING_UNREACHABLE, ENETUNREACH, 0, 0},
    };
    struct testing_peer *peer = testing_peer_add(t, "[::1]:80", TESTING_ACCEPT);

    testing_peer_delay(peer, 0.5, 0);
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        struct client c;
        double start = testing_now(t);
        testing_peer_behave(peer, outcomes[i].behaviour);
        cr_assert(eq(int, dial(&c, "[::1]:80"), outcomes[i].at_once));
        while (c.runs == 0 && testing_turn(t))
            continue;
        cr_assert(eq(dbl, testing_now(t), start + outcomes[i].after));
        cr_assert(eq(int, pending_error(&c), outcomes[i].error));
        cr_assert(eq(int, pending_error(&c), 0)); /* told once */
        hang_up(&c);
    }
    cr_assert(eq(uint, testing_peer_attempts(peer), 4));
    cr_assert(eq(uint, testing_peer_accepted(peer), 0));
}

/* Whenever it begins: a moment and so many seconds later are not always that far apart in floating point. */
Test(testing_network, a_connect_that_nobody_answers_ends_in_time_whenever_it_begins)
{
    testing_peer_add(t, "10.0.0.1:80", TESTING_BLACK_HOLE);
    for (int i = 0; i < 500; i++) {
        struct client c;
        dial(&c, "10.0.0.1:80");
        testing_run_for(t, 127.0001 + i * 0.0137);
        cr_assert(eq(int, pending_error(&c), ETIMEDOUT), "%d", i);
        hang_up(&c);
    }
}

Test(testing_network, an_address_without_a_peer_refuses)
{
    struct client c;

    dial(&c, "10.0.0.9:1");
    testing_run_for(t, 0);
    cr_assert(eq(uint, c.events, LINKPOOL_WRITE));
    cr_assert(eq(int, pending_error(&c), ECONNREFUSED));
    cr_fails(say(&c, "x"), EPIPE);
    hang_up(&c);
}

Test(testing_network, unix_connects_at_once_or_says_why_not)
{
    struct client c;
    struct testing_peer *peer;

    cr_assert(eq(int, dial(&c, "unix:/none"), ENOENT));
    hang_up(&c);
    cr_assert(eq(int, dial(&c, "unix:@none"), ECONNREFUSED));
    hang_up(&c);
    peer = testing_peer_add(t, "unix:/run/x.sock", TESTING_REFUSE);
    cr_assert(eq(int, dial(&c, "unix:/run/x.sock"), ECONNREFUSED));
    hang_up(&c);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, dial(&c, "unix:/run/x.sock"), EAGAIN));
    hang_up(&c);
    testing_peer_behave(peer, TESTING_ACCEPT);
    cr_assert(eq(int, dial(&c, "unix:/run/x.sock"), 0));
    testing_run_for(t, 0);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(str, (char *)(uintptr_t)testing_conn_client(testing_peer_conn(peer, 0)), "unix:"));
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    cr_fails(say(&c, "x"), EPIPE);
    hang_up(&c);
}

Test(testing_network, what_is_said_is_answered_and_can_be_peeked_at)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");
    char text[8] = "";
    size_t n;

    testing_peer_serve(peer, testing_echo, NULL);
    testing_peer_delay(peer, 0, 0.5);
    cr_assert(eq(i64, say(&c, "hello"), 5));
    want(&c, LINKPOOL_READ);
    testing_run_for(t, 0.49);
    cr_assert(eq(uint, c.events, 0));
    testing_run_for(t, 0.01);
    cr_assert(eq(uint, c.events, LINKPOOL_READ));
    cr_assert(eq(i64, hear(&c, text, 3, MSG_PEEK), 3));
    cr_assert(eq(str, text, "hel"));
    cr_hears(&c, "hello");
    cr_fails(hear(&c, text, 3, 0), EAGAIN);
    cr_assert(eq(int, memcmp(testing_peer_received(peer, &n), "hello", 5), 0));
    cr_assert(eq(sz, n, 5));
    cr_assert(eq(u64, testing_peer_bytes(peer), 5));
    hang_up(&c);
}

Test(testing_network, end_of_file_comes_after_what_was_said)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_say(peer, "bye", 3);
    testing_conn_close(testing_peer_conn(peer, 0));
    testing_run_for(t, 0);
    cr_hears(&c, "bye");
    cr_hears(&c, "");
    cr_hears(&c, "");
    cr_assert(eq(i64, say(&c, "x"), 1)); /* the first goes out, and is answered by a reset */
    testing_run_for(t, 0);
    cr_fails(say(&c, "x"), EPIPE);
    hang_up(&c);
}

Test(testing_network, a_reset_is_told_once_and_lets_what_came_be_read)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_say(peer, "par", 3);
    testing_run_for(t, 0);
    testing_peer_cut(peer, LINK_RESET);
    cr_hears(&c, "par");
    cr_fails(hear(&c, (char[4]){0}, 4, 0), ECONNRESET);
    cr_hears(&c, "");
    cr_fails(say(&c, "x"), EPIPE);
    hang_up(&c);
}

Test(testing_network, a_write_after_a_reset_says_it_over_tcp_and_leaves_it_to_a_read_over_unix)
{
    struct client tcp, un;

    testing_peer_cut(join(&tcp, "10.0.0.1:80"), LINK_RESET);
    cr_fails(say(&tcp, "x"), ECONNRESET);
    cr_hears(&tcp, "");
    hang_up(&tcp);
    testing_peer_cut(join(&un, "unix:/run/x.sock"), LINK_RESET);
    cr_fails(say(&un, "x"), EPIPE);
    cr_fails(hear(&un, (char[4]){0}, 4, 0), ECONNRESET);
    cr_hears(&un, "");
    hang_up(&un);
}

Test(testing_network, silence_fills_the_send_buffer_and_ends_by_the_users_time_out)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");
    char block[1000] = "";
    int ms = 20000, n = 0, seen;
    double start;

    env->setsockopt(env->data, c.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    cr_assert(testing_conn_option(testing_peer_conn(peer, 0), IPPROTO_TCP, TCP_USER_TIMEOUT, &seen));
    cr_assert(eq(int, seen, ms));
    testing_peer_cut(peer, LINK_TIMED_OUT);
    start = testing_now(t);
    while (say_bytes(&c, block, sizeof block) > 0)
        n++;
    cr_assert(eq(int, errno, EAGAIN));
    cr_assert(eq(int, n, 66)); /* 65,536 bytes */
    want(&c, LINKPOOL_READ);
    testing_run_for(t, 19.9);
    cr_assert(eq(uint, c.events, 0));
    testing_run_for(t, 1);
    cr_assert(eq(uint, c.events, LINKPOOL_READ));
    cr_assert(eq(int, pending_error(&c), ETIMEDOUT));
    cr_assert(eq(u64, testing_peer_bytes(peer), 0));
    cr_assert(lt(dbl, start, testing_now(t)));
    hang_up(&c);
}

Test(testing_network, a_window_holds_the_sender_back)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");
    static char block[100000];

    testing_peer_window(peer, 1000);
    cr_assert(eq(i64, say_bytes(&c, block, sizeof block), 65536));
    want(&c, LINKPOOL_WRITE);
    testing_run_for(t, 1);
    cr_assert(eq(uint, c.events, 0)); /* there is room, but too little of it: as Linux */
    cr_assert(eq(u64, testing_peer_bytes(peer), 1000));
    testing_peer_window(peer, SIZE_MAX);
    testing_run_for(t, 1);
    cr_assert(eq(u64, testing_peer_bytes(peer), 65536));
    cr_assert(eq(uint, c.events, LINKPOOL_WRITE));
    hang_up(&c);
}

Test(testing_network, bytes_sent_before_a_close_arrive)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    say(&c, "last words");
    hang_up(&c);
    cr_assert(eq(uint, testing_open_descriptors(t), 0));
    testing_run_for(t, 0);
    cr_assert(eq(u64, testing_peer_bytes(peer), 10));
    cr_assert(eq(uint, testing_peer_open(peer), 0));
}

Test(testing_network, bytes_sent_before_a_close_that_resets_arrive_too)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_serve(peer, testing_echo, NULL); /* its answers come to nobody */
    testing_peer_say(peer, "unread", 6);
    testing_run_for(t, 0);
    say(&c, "last words");
    hang_up(&c);
    testing_run_for(t, 0);
    cr_assert(eq(u64, testing_peer_bytes(peer), 10));
    cr_assert(eq(uint, testing_peer_open(peer), 0));
}

Test(testing_network, half_closed_still_hears_the_answer)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_serve(peer, testing_echo, NULL);
    testing_peer_delay(peer, 0, 1);
    say(&c, "ask");
    cr_assert(eq(int, env->shutdown(env->data, c.fd, SHUT_WR), 0));
    cr_fails(say(&c, "x"), EPIPE);
    testing_run_for(t, 2);
    cr_hears(&c, "ask");
    cr_hears(&c, "");
    hang_up(&c);
}

Test(testing_network, a_drip_and_a_cut_in_the_middle_of_an_answer)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_drip(peer, 2, 0.1);
    testing_peer_cut_after(peer, 5, LINK_RESET);
    testing_peer_say(peer, "abcdefgh", 8);
    testing_run_for(t, 0);
    cr_hears(&c, "ab");
    testing_run_for(t, 0.1);
    cr_hears(&c, "cd");
    testing_run_for(t, 0.1);
    cr_hears(&c, "e");
    cr_fails(hear(&c, (char[4]){0}, 4, 0), ECONNRESET);
    hang_up(&c);
}

Test(testing_network, accepting_and_ending_at_once_greets_first)
{
    struct client c;
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT_AND_CLOSE);

    testing_peer_greet(peer, "hi", 2);
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_hears(&c, "hi");
    cr_hears(&c, "");
    hang_up(&c);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_RESET);
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_hears(&c, "hi");
    cr_fails(hear(&c, (char[4]){0}, 4, 0), ECONNRESET);
    hang_up(&c);
    testing_peer_behave(peer, TESTING_SILENT);
    dial(&c, "10.0.0.1:80");
    say(&c, "anybody?");
    testing_run_for(t, 100);
    cr_fails(hear(&c, (char[4]){0}, 4, 0), EAGAIN);
    hang_up(&c);
    cr_assert(eq(uint, testing_peer_accepted(peer), 3));
}

Test(testing_network, a_full_backlog_drops_syns_which_come_again)
{
    struct client c[3];
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);

    testing_peer_backlog(peer, 1);
    testing_peer_accept_rate(peer, 2);
    for (int i = 0; i < 3; i++)
        dial(&c[i], "10.0.0.1:80"); /* one is accepted, one waits, one is dropped */
    testing_run_for(t, 0.4);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(uint, c[0].events | c[1].events, LINKPOOL_WRITE));
    cr_assert(eq(uint, c[2].events, 0));
    testing_run_for(t, 0.2);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    testing_run_for(t, 0.5); /* the SYN again after 1 s */
    cr_assert(eq(uint, c[2].events, LINKPOOL_WRITE));
    cr_assert(eq(uint, testing_peer_accepted(peer), 3));
    for (int i = 0; i < 3; i++)
        hang_up(&c[i]);
}

Test(testing_network, a_full_unix_backlog_says_try_again)
{
    struct client c[2];
    struct testing_peer *peer = testing_peer_add(t, "unix:@x", TESTING_ACCEPT);

    testing_peer_backlog(peer, 1);
    cr_assert(eq(int, dial(&c[0], "unix:@x"), 0));
    cr_assert(eq(int, dial(&c[1], "unix:@x"), EAGAIN));
    testing_run_for(t, 0);
    cr_assert(eq(int, try_connect(c[1].fd, "unix:@x"), 0));
    hang_up(&c[0]);
    hang_up(&c[1]);
}

Test(testing_network, a_freed_peer_resets_and_refuses)
{
    struct client c, d;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    testing_peer_delay(peer, 1, 0);
    dial(&d, "10.0.0.1:80");
    testing_peer_free(peer);
    cr_fails(hear(&c, (char[4]){0}, 4, 0), ECONNRESET);
    testing_run_for(t, 1);
    cr_assert(eq(int, pending_error(&d), ECONNREFUSED));
    cr_assert(not(zero(ptr, testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT))));
    hang_up(&c);
    hang_up(&d);
}

Test(testing_network, an_address_takes_one_peer)
{
    cr_assert(not(zero(ptr, testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT))));
    cr_assert(zero(ptr, testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT)));
    cr_assert(eq(int, errno, EADDRINUSE));
    cr_assert(zero(ptr, testing_peer_add(t, "nonsense", TESTING_ACCEPT)));
    cr_assert(eq(int, errno, EINVAL));
}

/* A server that counts lines: "n\n" for each. */
struct lines {
    struct testing_server server;
    struct testing_peer *peer;
    unsigned accepted, closed;
    bool free_at_close, free_at_bytes;
};

static void lines_accepted(void *data, struct testing_conn *conn)
{
    struct lines *lines = data;

    lines->accepted++;
    testing_conn_set_data(conn, lines);
    testing_conn_send(conn, "ready\n", 6);
}

static void lines_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct lines *lines = data;

    cr_assert(eq(ptr, testing_conn_data(conn), lines));
    if (lines->free_at_bytes) {
        testing_peer_free(testing_conn_peer(conn));
        return;
    }
    if (memchr(bytes, 'q', n))
        testing_conn_close(conn);
    else if (memchr(bytes, 'r', n))
        testing_conn_reset(conn);
    else
        testing_conn_send_after(conn, 0.5, "line\n", 5);
}

static void lines_closed(void *data, struct testing_conn *conn)
{
    struct lines *lines = data;

    lines->closed++;
    if (lines->free_at_close)
        testing_peer_free(testing_conn_peer(conn));
}

static void script(struct lines *lines, struct testing_peer *peer)
{
    *lines = (struct lines){
        .server = {.size = sizeof lines->server,
            .accepted = lines_accepted,
            .received = lines_received,
            .closed = lines_closed,
            .data = lines},
        .peer = peer,
    };
    testing_peer_on(peer, &lines->server);
}

Test(testing_network, a_scripted_server_talks_and_ends_as_it_likes)
{
    struct lines lines;
    struct client c;
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);

    script(&lines, peer);
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_hears(&c, "ready\n");
    say(&c, "x\n");
    testing_run_for(t, 0.5);
    cr_hears(&c, "line\n");
    say(&c, "q\n");
    testing_run_for(t, 0);
    cr_hears(&c, "");
    hang_up(&c);
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_hears(&c, "ready\n");
    say(&c, "r\n");
    testing_run_for(t, 0);
    cr_fails(hear(&c, (char[4]){0}, 4, 0), ECONNRESET);
    hang_up(&c);
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    hang_up(&c); /* unread: a reset, told as closed */
    testing_run_for(t, 0);
    cr_assert(eq(uint, lines.accepted, 3));
    cr_assert(eq(uint, lines.closed, 3));
}

Test(testing_network, a_peer_may_go_inside_its_own_callbacks)
{
    struct lines lines;
    struct client c;

    script(&lines, testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT));
    lines.free_at_bytes = true;
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    say(&c, "x\n");
    testing_run_for(t, 1);
    cr_assert(eq(uint, lines.closed, 0));
    hang_up(&c);
    script(&lines, testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT));
    lines.free_at_close = true;
    dial(&c, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_hears(&c, "ready\n");
    hang_up(&c);
    testing_run_for(t, 1);
    cr_assert(eq(uint, lines.closed, 1));
}

Test(testing_network, a_bound_address_is_what_the_peer_sees)
{
    struct link_address local = parsed("10.1.2.3:4567");
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
    struct client c = {.fd = open_for("10.0.0.1:80")};

    cr_assert(eq(int, env->bind(env->data, c.fd, &local.name.any, local.size), 0));
    try_connect(c.fd, "10.0.0.1:80");
    testing_run_for(t, 0);
    cr_assert(eq(str, (char *)(uintptr_t)testing_conn_client(testing_peer_conn(peer, 0)), "10.1.2.3:4567"));
    env->close(env->data, c.fd);
}

static void on_level(struct driver_io *io, unsigned events)
{
    struct client *c = (struct client *)io;

    c->events |= events;
    if (++c->runs == 3)
        driver->ops->io_stop(driver, io);
}

Test(testing_network, watchers_are_level_triggered)
{
    struct client c;
    struct testing_peer *peer = join(&c, "10.0.0.1:80");

    c.io.on = on_level;
    c.runs = 0;
    testing_peer_say(peer, "x", 1);
    want(&c, LINKPOOL_READ);
    testing_run_for(t, 1);
    cr_assert(eq(uint, c.runs, 3));
    cr_assert(eq(uint, c.events, LINKPOOL_READ));
    hang_up(&c);
}

static struct client pair[2];

static void on_stop_both(struct driver_io *io, unsigned events)
{
    (void)events;
    ((struct client *)io)->runs++;
    driver->ops->io_stop(driver, &pair[0].io);
    driver->ops->io_stop(driver, &pair[1].io);
}

Test(testing_network, a_stopped_watcher_does_not_run_in_the_same_turn)
{
    testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
    for (int i = 0; i < 2; i++) {
        dial(&pair[i], "10.0.0.1:80");
        pair[i].io.on = on_stop_both;
    }
    testing_run_for(t, 1);
    cr_assert(eq(uint, pair[0].runs + pair[1].runs, 1));
    hang_up(&pair[0]);
    hang_up(&pair[1]);
}

Test(testing_network, the_lowest_descriptor_is_used_again)
{
    int fds[200];

    for (int i = 0; i < 200; i++)
        cr_assert(eq(int, fds[i] = open_for("10.0.0.1:80"), 1000 + i));
    env->close(env->data, fds[150]);
    env->close(env->data, fds[3]);
    cr_assert(eq(int, open_for("10.0.0.1:80"), 1003));
    cr_assert(eq(int, open_for("10.0.0.1:80"), 1150));
    cr_assert(eq(int, open_for("10.0.0.1:80"), 1200));
    for (int i = 0; i <= 200; i++)
        env->close(env->data, 1000 + i);
}

Test(testing_network, descriptors_run_out)
{
    int fd;

    testing_limit_descriptors(t, 1);
    fd = open_for("10.0.0.1:80");
    cr_fails(open_for("10.0.0.1:80"), EMFILE);
    env->close(env->data, fd);
    fd = open_for("10.0.0.1:80");
    cr_assert(eq(int, fd, 1000));
    env->close(env->data, fd);
}

Test(testing_network, calls_fail_when_told_to)
{
    int fd;

    testing_fail_call(t, TESTING_SOCKET, 2, ENOBUFS, false);
    fd = open_for("10.0.0.1:80");
    cr_fails(open_for("10.0.0.1:80"), ENOBUFS);
    env->close(env->data, open_for("10.0.0.1:80"));
    testing_fail_call(t, TESTING_CONNECT, 1, ENETUNREACH, true);
    cr_fails(try_connect(fd, "10.0.0.1:80"), ENETUNREACH);
    cr_fails(try_connect(fd, "10.0.0.1:80"), ENETUNREACH);
    testing_fail_call(t, TESTING_CONNECT, 0, 0, false);
    cr_fails(try_connect(fd, "10.0.0.1:80"), EINPROGRESS);
    cr_assert(eq(u64, testing_calls(t, TESTING_SOCKET), 3));
    cr_assert(eq(u64, testing_calls(t, TESTING_CONNECT), 3));
    testing_fail_call(t, TESTING_CLOSE, 1, EINTR, false);
    cr_fails(env->close(env->data, fd), EINTR); /* and closed all the same */
}

Test(testing_network, a_connect_that_a_signal_cuts_short_goes_on)
{
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
    struct client c, d;

    testing_peer_delay(peer, 0.25, 0);
    testing_fail_call(t, TESTING_CONNECT, 1, EINTR, false);
    cr_assert(eq(int, dial(&c, "10.0.0.1:80"), EINTR));
    cr_fails(try_connect(c.fd, "10.0.0.1:80"), EALREADY);
    testing_run_for(t, 0.24);
    cr_assert(eq(uint, c.runs, 0));
    testing_run_for(t, 0.02);
    cr_assert(eq(uint, c.events, LINKPOOL_WRITE));
    cr_assert(eq(int, pending_error(&c), 0));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    testing_fail_call(t, TESTING_CONNECT, 1, EINTR, false);
    cr_assert(eq(int, dial(&d, "10.0.0.2:80"), EINTR));
    testing_run_for(t, 1);
    cr_assert(eq(int, pending_error(&d), ECONNREFUSED));
    hang_up(&c);
    hang_up(&d);
}

Test(testing_network, a_connect_that_is_over_at_once_is_not_cut_short)
{
    struct client c;
    int fd = open_for("unix:/run/y");

    testing_peer_add(t, "unix:/run/x", TESTING_ACCEPT);
    testing_fail_call(t, TESTING_CONNECT, 1, EINTR, false);
    cr_fails(try_connect(fd, "unix:/run/y"), ENOENT);
    env->close(env->data, fd);
    testing_fail_call(t, TESTING_CONNECT, 1, EINTR, false);
    cr_assert(eq(int, dial(&c, "unix:/run/x"), EINTR)); /* that it is up is lost with the answer */
    testing_run_for(t, 0);
    cr_assert(eq(uint, c.events, LINKPOOL_WRITE));
    cr_assert(eq(int, pending_error(&c), 0));
    hang_up(&c);
}

Test(testing_network, memory_is_counted_and_runs_out_when_told_to)
{
    char *a = env->realloc(env->data, NULL, 0, 100), *b;

    memset(a, 7, 100);
    cr_assert(eq(sz, testing_bytes(t), 100));
    a = env->realloc(env->data, a, 100, 200);
    cr_assert(eq(chr, a[99], 7));
    testing_fail_allocation(t, 2, false);
    b = env->realloc(env->data, NULL, 0, 1);
    cr_assert(zero(ptr, env->realloc(env->data, a, 200, 300)));
    cr_assert(eq(chr, a[99], 7)); /* as realloc(): the old block stays */
    cr_assert(eq(sz, testing_blocks(t), 2));
    cr_assert(eq(sz, testing_bytes(t), 201));
    testing_fail_allocation(t, 1, true);
    cr_assert(zero(ptr, env->realloc(env->data, NULL, 0, 1)));
    cr_assert(zero(ptr, env->realloc(env->data, NULL, 0, 1)));
    env->realloc(env->data, a, 200, 0);
    env->realloc(env->data, b, 1, 0);
    cr_assert(eq(sz, testing_blocks(t), 0));
    cr_assert(eq(u64, testing_allocations(t), 6));
}

Test(testing_network, short_writes_are_drawn_from_the_seed)
{
    struct client c;
    unsigned shorter = 0;

    join(&c, "10.0.0.1:80");
    testing_short_writes(t, true);
    for (int i = 0; i < 100; i++) {
        ssize_t n = say(&c, "0123456789");
        cr_assert(lt(i64, 0, n));
        shorter += n < 10;
    }
    cr_assert(lt(uint, 50, shorter));
    hang_up(&c);
}

Test(testing_misuse, misuses_are_counted)
{
    struct client c;
    struct iovec part = {(char[]){"x"}, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    unsigned n = 0;
    void *block;

    set_up();
    join(&c, "10.0.0.1:80");
    cr_assert(eq(str, (char *)(uintptr_t)testing_last_misuse(t), ""));
    cr_assert(eq(i64, env->sendmsg(env->data, c.fd, &message, 0), 1));
    cr_assert(eq(uint, testing_misuses(t), ++n));
    env->close(env->data, c.fd); /* still watched */
    testing_peer_add(t, "10.0.0.2:80", TESTING_ACCEPT);
    testing_turn(t);
    cr_assert(eq(uint, testing_misuses(t), ++n));
    driver->ops->io_stop(driver, &c.io);
    cr_fails(env->close(env->data, c.fd), EBADF);
    cr_assert(eq(uint, testing_misuses(t), ++n));
    cr_fails(env->close(env->data, 3), EBADF);
    cr_assert(eq(uint, testing_misuses(t), ++n));
    env->close(env->data, env->socket(env->data, AF_INET, SOCK_STREAM, 0));
    cr_assert(eq(uint, testing_misuses(t), ++n));
    block = env->realloc(env->data, NULL, 0, 10);
    env->realloc(env->data, block, 11, 0);
    cr_assert(eq(uint, testing_misuses(t), ++n));
    driver_free(driver);
    testing_free(t);
}

static unsigned run_of(uint64_t seed)
{
    struct client c[50];
    unsigned order = 0;

    t = testing_new(seed);
    env = testing_env(t);
    driver = testing_driver(t);
    testing_shuffle(t, true);
    testing_peer_spread(testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT), 0.5);
    testing_peer_delay(testing_peer_add(t, "10.0.0.2:80", TESTING_ACCEPT), 1, 0);
    for (int i = 0; i < 50; i++)
        dial(&c[i], i % 2 ? "10.0.0.1:80" : "10.0.0.2:80");
    while (testing_turn(t))
        for (unsigned i = 0; i < 50; i++)
            order = order * 31 + c[i].runs * i;
    for (int i = 0; i < 50; i++)
        hang_up(&c[i]);
    driver_free(driver);
    testing_free(t);
    return order;
}

Test(testing_misuse, the_same_seed_gives_the_same_run)
{
    cr_assert(eq(uint, run_of(3), run_of(3)));
}
