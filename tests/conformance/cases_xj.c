/* cases_xj.c - the cases XJ: descriptors, ports, signals and processes. */
#include "tests/conformance/cases.h"

#include <ev.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linkpool/transport.h"

Test(cases, XJ2_at_the_limit_an_idle_link_elsewhere_gives_its_descriptor)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_peer(&world, 4);
    fake_echo(&world, B);
    cases_use(&world, A);
    fake_hold(&world, &user, A);
    fake_give_back(&user);
    testing_limit_descriptors(world.t, 1);
    cases_use(&world, B);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 1));
    fake_world_end(&world);
}

/* What is used again leaves nothing to wait for. */
Test(cases, XJ3_fifty_thousand_uses_of_one_address_take_one_port)
{
    struct fake_world world;
    struct testing_peer *peer = cases_peer(&world, 4);

    for (int i = 0; i < 50000; i++)
        cases_use(&world, A);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

/* ---- on the real loop ---- */

static void ignore(struct pool_lease *lease)
{
    (void)lease;
}

struct real {
    struct ev_loop *loop;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_lease lease;
};

static void begin_real(struct real *real, const struct protocol *protocol)
{
    struct pool_host_options host;
    struct pool_options options;

    pool_host_options_init(&host);
    host.protocol = protocol;
    pool_options_init(&options);
    options.host = &host;
    *real = (struct real){.loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_FORKCHECK), .lease = {.done = ignore}};
    real->peer = testing_peer_on_loop(real->loop, "127.0.0.1:0", TESTING_ACCEPT);
    real->pool = pool_new(real->loop, &options);
    testing_peer_serve(real->peer, testing_echo, NULL);
    cr_assert(ge(int, pool_acquire(real->pool, testing_peer_address(real->peer), &real->lease), POOL_READY));
    while (!real->lease.channel)
        ev_run(real->loop, EVRUN_ONCE);
}

/* ---- an abrupt close: no option of ours, but of the socket ---- */

static int listen_somewhere(char *text, size_t size)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(eq(int, bind(fd, (struct sockaddr *)&name, length), 0));
    cr_assert(eq(int, listen(fd, 1), 0));
    cr_assert(eq(int, getsockname(fd, (struct sockaddr *)&name, &length), 0));
    snprintf(text, size, "127.0.0.1:%u", (unsigned)ntohs(name.sin_port));
    return fd;
}

static int close_abruptly(void *data, int fd, int domain)
{
    struct linger at_once = {.l_onoff = 1};

    (void)data, (void)domain;
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* What a peer reads when the pool discards its link. */
static ssize_t read_the_end(const struct transport *transport, int *error)
{
    struct pool_lease lease = {.done = ignore};
    struct pool_host_options host;
    struct pool_options options;
    char text[32], byte;

    int listener = listen_somewhere(text, sizeof text);
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    pool_host_options_init(&host);
    host.transport = transport;
    pool_options_init(&options);
    options.host = &host;
    struct pool *pool = pool_new(loop, &options);
    cr_assert(eq(int, pool_acquire(pool, text, &lease), POOL_PENDING));
    while (!lease.channel)
        ev_run(loop, EVRUN_ONCE);
    int fd = accept(listener, NULL, NULL);
    cr_assert(eq(int, pool_release(&lease, POOL_DISCARD), 0));
    pool_free(pool);
    ssize_t got = recv(fd, &byte, 1, 0);
    *error = errno;
    close(fd);
    close(listener);
    ev_loop_destroy(loop);
    return got;
}

Test(cases, XJ3_a_close_that_leaves_no_port_waiting_is_the_sockets_own_option)
{
    static const struct transport_tcp_options settings = {.size = sizeof settings, .prepare = close_abruptly};
    struct transport abrupt = transport_tcp;
    int error;

    abrupt.config = &settings;
    cr_assert(eq(long, read_the_end(&transport_tcp, &error), 0));
    cr_assert(eq(long, read_the_end(&abrupt, &error), -1)); /* reset: our side has gone from the kernel */
    cr_assert(eq(int, error, ECONNRESET));
}

static void end_real(struct real *real)
{
    pool_free(real->pool);
    testing_peer_free(real->peer);
    ev_loop_destroy(real->loop);
}

Test(cases, XJ5_writing_to_a_peer_that_reset_raises_no_signal)
{
    struct iovec part = {"q", 1};
    struct real real;
    ssize_t sent = 1;

    begin_real(&real, &protocol_raw);
    signal(SIGPIPE, SIG_DFL);
    while (!testing_peer_open(real.peer))
        ev_run(real.loop, EVRUN_ONCE);
    testing_peer_cut(real.peer, LINK_RESET);
    for (int i = 0; i < 1000 && sent > 0; i++)
        sent = channel_writev(real.lease.channel, &part, 1);
    cr_assert(eq(long, sent, LINKPOOL_ELOST)); /* that was the reset; what is written after it would raise the signal */
    cr_assert(eq(long, channel_writev(real.lease.channel, &part, 1), LINKPOOL_ELOST));
    cr_assert(eq(int, real.lease.system_errno, EPIPE)); /* and the process is there */
    pool_release(&real.lease, POOL_DISCARD);
    end_real(&real);
}

static void say_goodbye(struct protocol_link *pl)
{
    protocol_write(pl, &(struct iovec){"B", 1}, 1);
}

static int child(struct real *real)
{
    pool_after_fork(real->pool);
    bool is_over = real->lease.status == LINKPOOL_ECLOSED && !real->lease.channel;
    pool_free(real->pool);
    return is_over ? 0 : 1;
}

Test(cases, XJ6_a_childs_end_of_the_pool_puts_no_byte_on_the_parents_links)
{
    struct protocol polite = protocol_raw;
    struct iovec part = {"q", 1};
    struct real real;
    char answer = 0;
    int status = -1;

    polite.leave = say_goodbye; /* as TLS does, and HTTP/2 */
    begin_real(&real, &polite);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(&real));
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    cr_assert(eq(int, status, 0));
    cr_assert(eq(long, channel_writev(real.lease.channel, &part, 1), 1));
    while (channel_read(real.lease.channel, &answer, 1) != 1)
        ev_run(real.loop, EVRUN_ONCE);
    cr_assert(eq(chr, answer, 'q'));
    cr_assert(eq(u64, testing_peer_bytes(real.peer), 1)); /* the parent's, and no other */
    pool_release(&real.lease, POOL_REUSE);
    end_real(&real);
}

/* A use by one who asks again where he is told to. */
static bool use_patiently(struct fake_world *world, const char *text)
{
    struct iovec part = {"x", 1};
    struct fake_user user = {0};
    ssize_t n;
    char byte;

    fake_ask(world, &user, text);
    fake_run(world, 4);
    if (user.status != POOL_READY)
        return false;
    while ((n = channel_writev(user.lease.channel, &part, 1)) == LINKPOOL_EAGAIN)
        fake_settle(world);
    fake_settle(world);
    while (n == 1 && (n = channel_read(user.lease.channel, &byte, 1)) == LINKPOOL_EAGAIN)
        n = 1;
    pool_release(&user.lease, POOL_REUSE);
    return n == 1;
}

Test(cases, XJ7_interrupted_and_failing_calls_are_met)
{
    static const struct {
        enum testing_call call;
        int error;
        bool goes_on;
    } faults[] = {{TESTING_CONNECT, ECONNABORTED, false}, {TESTING_SOCKET, ENFILE, false},
        {TESTING_RECVMSG, EINTR, true}, {TESTING_SENDMSG, EINTR, true}, {TESTING_CLOSE, EINTR, true},
        {TESTING_SOCKET, ENOBUFS, false}};

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct fake_world world;
        cases_peer(&world, 2);
        testing_fail_call(world.t, faults[i].call, 1, faults[i].error, false);
        cr_assert(eq(int, use_patiently(&world, A), faults[i].goes_on), "fault %zu", i);
        fake_run(&world, 11);
        cr_assert(use_patiently(&world, A)); /* and in any case it recovers */
        fake_world_end(&world);
    }
}
