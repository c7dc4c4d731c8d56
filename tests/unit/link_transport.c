/* link_transport.c - how a link's socket is made and asked for, and what transports may ask of the library. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/fakes/owner.h"

/* ---- options of sockets ---- */

static struct transport with(const struct transport_tcp_options *options)
{
    struct transport transport = transport_tcp;

    transport.config = options;
    return transport;
}

static void connect_by(struct fake_owner *owner, const struct transport *transport)
{
    fake_owner_begin(owner, TESTING_ACCEPT);
    owner->options.transport = transport;
    fake_owner_start(owner);
    fake_owner_until(owner, LINK_READY, 1);
    fake_owner_settle(owner);
}

/* What the client's socket was set to; -1: nothing. */
static int option(const struct fake_owner *owner, int level, int name)
{
    int value = -1;

    testing_conn_option(testing_peer_conn(owner->peer, 0), level, name, &value);
    return value;
}

Test(link_transport, without_settings_only_nodelay_is_set)
{
    struct fake_owner owner;

    connect_by(&owner, &transport_tcp);
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_NODELAY), 1));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SETSOCKOPT), 1));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_BIND), 0));
    fake_owner_end(&owner);
}

Test(link_transport, keepalive_and_the_user_time_out_are_set_as_asked)
{
    struct transport_tcp_options options = {.size = sizeof options,
        .keepalive = true,
        .keepalive_idle = 30,
        .keepalive_interval = 5,
        .keepalive_probes = 4,
        .user_timeout = 2.5};
    struct transport transport = with(&options);
    struct fake_owner owner;

    connect_by(&owner, &transport);
    cr_assert(eq(int, option(&owner, SOL_SOCKET, SO_KEEPALIVE), 1));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_KEEPIDLE), 30));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_KEEPINTVL), 5));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_KEEPCNT), 4));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_USER_TIMEOUT), 2500));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_NODELAY), 1));
    fake_owner_end(&owner);
}

Test(link_transport, what_is_zero_is_left_to_the_system)
{
    struct transport_tcp_options options = {.size = sizeof options, .keepalive = true, .nagle = true};
    struct transport transport = with(&options);
    struct fake_owner owner;

    connect_by(&owner, &transport);
    cr_assert(eq(int, option(&owner, SOL_SOCKET, SO_KEEPALIVE), 1));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_KEEPIDLE), -1));
    cr_assert(eq(int, option(&owner, IPPROTO_TCP, TCP_NODELAY), -1));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SETSOCKOPT), 1));
    fake_owner_end(&owner);
}

Test(link_transport, the_user_time_out_finds_a_peer_that_fell_silent)
{
    struct transport_tcp_options options = {.size = sizeof options, .user_timeout = 2.5};
    struct transport transport = with(&options);
    struct fake_owner owner;

    connect_by(&owner, &transport);
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    fake_owner_send(&owner, "anyone?");
    fake_owner_run(&owner, 2.4);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_RESET));
    fake_owner_end(&owner);
}

Test(link_transport, the_local_address_is_bound_the_links_own_before_the_transports)
{
    struct transport_tcp_options options = {.size = sizeof options, .local = "10.0.0.8:4000"};
    struct transport transport = with(&options);
    struct fake_owner owner;
    const char *client;

    connect_by(&owner, &transport);
    client = testing_conn_client(testing_peer_conn(owner.peer, 0));
    cr_assert(eq(str, (char *)client, "10.0.0.8:4000"));
    fake_owner_end(&owner);

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    owner.options.local = "10.0.0.9:0"; /* any port */
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    client = testing_conn_client(testing_peer_conn(owner.peer, 0));
    cr_assert(eq(int, strncmp(client, "10.0.0.9:", 9), 0), "%s", client);
    cr_assert(ne(str, (char *)client, "10.0.0.9:0"));
    fake_owner_end(&owner);
}

struct prepared {
    const struct linkpool_env *env;
    int domain, answer, calls;
};

static int prepare(void *data, int fd, int domain)
{
    struct prepared *prepared = data;
    int size = 4096;

    prepared->domain = domain;
    prepared->calls++;
    if (prepared->answer) {
        errno = EPERM;
        return -1;
    }
    return prepared->env->setsockopt(prepared->env->data, fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

Test(link_transport, the_users_hook_sees_each_new_socket_before_it_connects_and_may_refuse_it)
{
    struct prepared prepared = {0};
    struct transport_tcp_options options = {.size = sizeof options, .prepare = prepare, .data = &prepared};
    struct transport transport = with(&options);
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    prepared.env = &owner.env;
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, option(&owner, SOL_SOCKET, SO_RCVBUF), 4096));
    cr_assert(eq(int, prepared.domain, AF_INET));
    cr_assert(eq(int, prepared.calls, 1));
    prepared.answer = -1;
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 2);
    int error;
    const char *text;
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, &error, &text), LINK_UNREACHABLE));
    cr_assert(eq(int, error, EPERM));
    cr_assert(eq(str, (char *)text, "socket option refused"));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

/* ---- calls that fail ---- */

static void fail(enum testing_call call, int error, enum link_reason reason)
{
    struct fake_owner owner;
    int system_errno;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.local = "10.0.0.8:0";
    testing_fail_call(owner.t, call, 1, error, false);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.5);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF), "call %d", call);
    cr_assert(eq(int, link_last_reason(owner.link, &system_errno, NULL), reason), "call %d", call);
    cr_assert(eq(int, system_errno, error));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    fake_owner_run(&owner, 2);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_end(&owner);
}

Test(link_transport, a_connect_that_a_signal_cuts_short_is_waited_for)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_delay(owner.peer, 0.25, 0);
    testing_fail_call(owner.t, TESTING_CONNECT, 1, EINTR, false);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING)); /* it is not up before it is */
    fake_owner_run(&owner, 0.1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

Test(link_transport, a_system_call_that_fails_ends_the_attempt_with_its_errno)
{
    fail(TESTING_SOCKET, EMFILE, LINK_NO_DESCRIPTORS);
    fail(TESTING_SOCKET, ENFILE, LINK_NO_DESCRIPTORS);
    fail(TESTING_SOCKET, ENOBUFS, LINK_NO_MEMORY);
    fail(TESTING_SETSOCKOPT, EPERM, LINK_UNREACHABLE);
    fail(TESTING_BIND, EADDRNOTAVAIL, LINK_UNREACHABLE);
    fail(TESTING_CONNECT, EADDRNOTAVAIL, LINK_UNREACHABLE);
    fail(TESTING_CONNECT, ECONNREFUSED, LINK_REFUSED);
    fail(TESTING_GETSOCKOPT, ENOTCONN, LINK_UNREACHABLE);
}

/* ---- unix ---- */

static void begin_unix(struct fake_owner *owner, struct testing_peer **peer, enum testing_behaviour behaviour)
{
    fake_owner_begin(owner, TESTING_ACCEPT);
    *peer = testing_peer_add(owner->t, "unix:@there", behaviour);
    testing_peer_serve(*peer, testing_echo, NULL);
    owner->link = link_new(owner->driver, "unix:@there", &owner->options);
    link_start(owner->link);
}

Test(link_transport, a_unix_connect_that_meets_a_full_backlog_is_tried_again_by_timer)
{
    struct fake_owner owner;
    struct testing_peer *peer;

    begin_unix(&owner, &peer, TESTING_BLACK_HOLE); /* EAGAIN */
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 1)); /* the same socket */
    cr_assert(ge(uint, testing_peer_attempts(peer), 50));      /* brisk, and no spinning */
    cr_assert(le(uint, testing_peer_attempts(peer), 200));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 0.1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected"));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SOCKET), 1));
    fake_owner_end(&owner);
}

Test(link_transport, trying_again_does_not_move_the_deadline)
{
    struct fake_owner owner;
    struct testing_peer *peer;

    begin_unix(&owner, &peer, TESTING_BLACK_HOLE);
    fake_owner_run(&owner, 2.999);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    fake_owner_run(&owner, 0.002);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_TIMED_OUT));
    fake_owner_end(&owner);
}

Test(link_transport, a_unix_connection_carries_bytes_and_is_lost_like_any_other)
{
    struct fake_owner owner;
    struct testing_peer *peer;

    begin_unix(&owner, &peer, TESTING_ACCEPT);
    owner.hears = true;
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SETSOCKOPT), 0)); /* TCP's would be refused */
    fake_owner_send(&owner, "hi");
    fake_owner_settle(&owner);
    cr_assert(eq(str, owner.heard, "hi"));
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    fake_owner_end(&owner);
}

/* ---- a transport of one's own ---- */

static struct {
    unsigned opens, closes;
    unsigned tries; /* before it waits for the descriptor */
    double every;
    struct link_attempt attempt;
} mine;

static enum transport_step open_mine(struct transport_link *tl, unsigned events)
{
    if (tl->fd < 0)
        return transport_tcp_open(tl, events);
    mine.opens++;
    if (mine.opens <= mine.tries) {
        transport_want(tl, 0);
        transport_retry(tl, mine.every);
        return TRANSPORT_AGAIN;
    }
    transport_want(tl, LINKPOOL_READ); /* for a word that never comes */
    return TRANSPORT_AGAIN;
}

static void close_mine(struct transport_link *tl, bool quiet)
{
    mine.closes++;
    transport_tcp_close(tl, quiet);
}

static struct transport transport_mine(void)
{
    struct transport transport = transport_tcp;

    transport.open = open_mine;
    transport.close = close_mine;
    return transport;
}

Test(link_transport, one_that_waits_after_trying_again_still_has_its_deadline)
{
    struct transport transport = transport_mine();
    struct fake_owner owner;

    mine.tries = 5;
    mine.every = 0.1;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2.9);
    cr_assert(eq(uint, mine.opens, 6));
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_TIMED_OUT));
    cr_assert(eq(uint, mine.closes, 1));
    fake_owner_end(&owner);
}

static enum transport_step fail_with_words(struct transport_link *tl, unsigned events)
{
    char words[] = "not today";

    (void)events;
    cr_assert(eq(str, (char *)transport_address(tl), FAKE_ADDRESS));
    cr_assert(eq(str, (char *)transport_server_name(tl), "upstream"));
    cr_assert(eq(str, (char *)transport_local(tl), ""));
    cr_assert(eq(int, transport_fail(tl, LINK_TLS_FAILED, 0, words), -1));
    memset(words, 'x', sizeof words - 1); /* copied */
    return TRANSPORT_FAILED;
}

Test(link_transport, its_words_are_kept_until_the_next_end)
{
    struct transport transport = transport_mine();
    struct fake_owner owner;
    const char *text;

    transport.open = fail_with_words;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    owner.options.server_name = "upstream";
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.5);
    cr_assert(eq(int, link_last_reason(owner.link, NULL, &text), LINK_TLS_FAILED));
    cr_assert(eq(str, (char *)text, "not today"));
    transport.open = open_mine;
    mine.tries = 0;
    fake_owner_run(&owner, 5);
    cr_assert(eq(int, link_last_reason(owner.link, NULL, &text), LINK_TIMED_OUT));
    cr_assert(eq(str, (char *)text, ""));
    fake_owner_end(&owner);
}

/* ---- handles of attempts ---- */

static enum transport_step keep_a_handle(struct transport_link *tl, unsigned events)
{
    enum transport_step step = transport_tcp_open(tl, events);

    mine.attempt = transport_attempt(tl);
    return step;
}

Test(link_transport, a_handle_finds_its_attempt_and_none_afterwards)
{
    struct transport transport = transport_mine();
    struct fake_owner owner;

    transport.open = keep_a_handle;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    struct transport_link *tl = transport_attempt_link(mine.attempt);
    cr_assert(ne(ptr, tl, NULL));
    cr_assert(eq(ptr, tl->link, owner.link));
    cr_assert(eq(u64, transport_attempt(tl).id, mine.attempt.id)); /* one a link */
    struct link_attempt first = mine.attempt;
    cr_assert(eq(int, transport_lost(tl, LINK_RESET, ECONNRESET, "gone"), 0));
    fake_owner_run(&owner, 2);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_RESET));
    cr_assert(ne(u64, mine.attempt.id, first.id));
    cr_assert(eq(ptr, transport_attempt_link(first), NULL));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 1));
    cr_assert(ne(ptr, transport_attempt_link(mine.attempt), NULL));
    link_free(owner.link);
    owner.link = NULL;
    cr_assert(eq(ptr, transport_attempt_link(mine.attempt), NULL)); /* its driver is there, nothing else is */
    fake_owner_end(&owner);
}

static enum transport_step keep_without_memory(struct transport_link *tl, unsigned events)
{
    struct testing *t = ((struct fake_owner *)link_data(tl->link))->t;

    testing_fail_allocation(t, 1, true);
    mine.attempt = transport_attempt(tl);
    testing_fail_allocation(t, 0, false);
    return transport_tcp_open(tl, events);
}

Test(link_transport, without_memory_a_handle_is_as_one_that_is_over)
{
    struct transport transport = transport_mine();
    struct fake_owner owner;

    transport.open = keep_without_memory;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(u64, mine.attempt.id, 0));
    cr_assert(eq(ptr, transport_attempt_link(mine.attempt), NULL));
    fake_owner_end(&owner);
}

/* ---- a descriptor that changes while connecting ---- */

static enum transport_step change_descriptor(struct transport_link *tl, unsigned events)
{
    const struct linkpool_env *env = transport_env(tl);
    enum transport_step step = transport_tcp_open(tl, events);
    int old = tl->fd;

    if (step != TRANSPORT_UP || mine.opens++)
        return step;
    transport_moved(tl, -1); /* the library's next socket */
    env->close(env->data, old);
    step = transport_tcp_open(tl, 0);
    transport_moved(tl, tl->fd);
    return step;
}

Test(link_transport, a_descriptor_may_change_while_connecting)
{
    struct transport transport = transport_mine();
    struct fake_owner owner;

    transport.open = change_descriptor;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    owner.hears = true;
    testing_peer_delay(owner.peer, 0.5, 0);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, testing_peer_accepted(owner.peer), 2));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 1));
    fake_owner_send(&owner, "new");
    fake_owner_settle(&owner);
    cr_assert(eq(str, owner.heard, "new"));
    fake_owner_end(&owner);
}
