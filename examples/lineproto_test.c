/* lineproto_test.c - lineproto_core.c in virtual time: logging in, being refused, cleaning, signs of life, and servers
 * that make no sense. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linkpool/linkpool.h>
#include <linkpool/testing.h>
#include <string.h>

#include "examples/lineproto_core.h"

static const char address[] = "10.0.0.1:110";

/* A server: what it answers to each line, and what it has heard. */
static struct {
    const char *to_user, *to_password, *to_reset, *to_ping; /* NULL: +OK; "": nothing */
    char heard[512];
} server;

static struct {
    struct testing *t;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_host *host;
    struct line_login login;
    struct protocol protocol;
} world;

struct user {
    struct pool_lease lease;
    unsigned told;
    char answer[LINE_MOST];
    size_t n;
};

/* ---- the server ---- */

static const char *answer_to(const char *line)
{
    static const struct {
        const char *word;
        const char **answer;
    } answers[] = {{"USER ", &server.to_user}, {"PASS ", &server.to_password}, {"RSET", &server.to_reset},
        {"PING", &server.to_ping}};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strncmp(line, answers[i].word, strlen(answers[i].word)) == 0 && *answers[i].answer)
            return *answers[i].answer;
    return "+OK\r\n";
}

/* Each line comes whole: it was written so, and the fake network cuts nothing. */
static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    char line[LINE_MOST + 1];

    (void)data;
    cr_assert(le(sz, n, LINE_MOST));
    memcpy(line, bytes, n);
    line[n] = '\0';
    cr_assert(eq(str, line + n - 2, "\r\n"));
    line[n - 2] = '|';
    line[n - 1] = '\0';
    strcat(server.heard, line);
    const char *answer = answer_to(line);
    if (*answer)
        testing_conn_send(conn, answer, strlen(answer));
}

/* ---- the stage ---- */

static void up(void)
{
    struct pool_options options;
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = address, .protocol = &world.protocol};
    struct testing_server hooks = {.size = sizeof hooks, .received = on_received};

    memset(&server, 0, sizeof server);
    world.t = testing_new(1);
    world.peer = testing_peer_add(world.t, address, TESTING_ACCEPT);
    testing_peer_on(world.peer, &hooks);
    world.login = (struct line_login){"ann", "secret"};
    world.protocol = line_protocol(&world.login);
    pool_options_init(&options);
    options.env = testing_env(world.t);
    world.pool = pool_new_on(testing_driver(world.t), &options);
    world.host = pool_host_for(world.pool, &endpoint, NULL);
    cr_assert(ne(ptr, world.host, NULL));
}

static void down(void)
{
    pool_free(world.pool);
    cr_assert(eq(uint, testing_misuses(world.t), 0));
    cr_assert(eq(sz, testing_blocks(world.t), 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    testing_free(world.t);
}

static void on_done(struct pool_lease *lease)
{
    ((struct user *)lease->data)->told++;
}

static bool is_told(void *data)
{
    return ((struct user *)data)->told > 0;
}

/* Asks and waits. @return the lease's status. */
static int hold(struct user *user)
{
    *user = (struct user){.lease = {.done = on_done, .data = user}};
    if (pool_acquire_host(world.host, &user->lease) == POOL_PENDING)
        cr_assert(testing_run_until(world.t, is_told, user, 10));
    return user->lease.status;
}

static void on_readable(struct channel *channel)
{
    struct user *user = channel_lease(channel)->data;
    ssize_t got = channel_read(channel, user->answer + user->n, sizeof user->answer - user->n);

    cr_assert(lt(long, 0, got));
    user->n += (size_t)got;
    user->told++;
}

static const struct channel_events events = {.readable = on_readable};

static const char *ask(struct user *user, const char *line)
{
    user->told = 0;
    user->n = 0;
    channel_watch(user->lease.channel, &events, LINKPOOL_READ);
    cr_assert(eq(
        long, channel_writev(user->lease.channel, &(struct iovec){(void *)line, strlen(line)}, 1), (long)strlen(line)));
    cr_assert(testing_run_until(world.t, is_told, user, 10));
    cr_assert(eq(long, line_complete(user->answer, user->n), (long)user->n));
    return user->answer;
}

static void settle(void)
{
    cr_assert(testing_run_for(world.t, 0.001));
}

static void expect_words(const char *words)
{
    char how[512];

    pool_host_explain(world.host, how, sizeof how);
    cr_assert(ne(ptr, strstr(how, words), NULL), "%s", how);
}

/* ---- the tests ---- */

Test(lineproto, a_link_logs_in_before_it_is_lent_and_is_cleaned_between_two)
{
    struct user user;

    up();
    cr_assert(eq(int, hold(&user), POOL_READY));
    cr_assert(eq(str, server.heard, "USER ann|PASS secret|"));
    cr_assert(eq(str, (char *)ask(&user, "LIST\r\n"), "+OK"));
    pool_release(&user.lease, POOL_REUSE);
    settle();
    cr_assert(eq(int, hold(&user), POOL_READY));
    cr_assert(eq(int, user.lease.reused, true));
    cr_assert(eq(str, server.heard, "USER ann|PASS secret|LIST|RSET|"));
    pool_release(&user.lease, POOL_REUSE);
    cr_assert(eq(uint, testing_peer_accepted(world.peer), 1));
    down();
}

Test(lineproto, a_refused_login_is_told_in_the_servers_words)
{
    const char *const words[] = {"-ERR no such user\r\n", "-ERR wrong password\r\n"};
    struct user user;

    for (unsigned i = 0; i < 2; i++) {
        up();
        *(i ? &server.to_password : &server.to_user) = words[i];
        cr_assert(eq(int, hold(&user), LINKPOOL_EUNAVAILABLE));
        cr_assert(eq(int, user.lease.reason, LINK_HANDSHAKE_FAILED));
        expect_words(i ? "-ERR wrong password" : "-ERR no such user");
        down();
    }
}

Test(lineproto, one_who_cannot_be_a_line_is_not_said)
{
    static char long_one[LINE_MOST];
    const struct line_login logins[] = {{"ann\nQUIT", "x"}, {"ann", "x\rQUIT"}, {long_one, "x"}, {"ann", long_one}};
    struct user user;

    memset(long_one, 'x', sizeof long_one - 1);
    for (unsigned i = 0; i < 4; i++) {
        up();
        world.login = logins[i];
        cr_assert(eq(int, hold(&user), LINKPOOL_EUNAVAILABLE));
        cr_assert(eq(str, server.heard, (char *)(i % 2 || i == 3 ? "USER ann|" : "")));
        expect_words("one line");
        down();
    }
}

Test(lineproto, a_login_that_is_not_answered_takes_its_time_alone)
{
    struct user user;

    up();
    server.to_password = "";
    cr_assert(eq(int, hold(&user), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_TIMED_OUT)); /* connect_timeout */
    down();
}

Test(lineproto, a_server_that_makes_no_sense_is_left)
{
    static char long_line[LINE_MOST + 3] = "+OK ", longest[LINE_MOST + 1] = "+OK ";
    const struct {
        const char *says;
        int status;
    } cases[] = {{long_line, LINKPOOL_EUNAVAILABLE}, {longest, POOL_READY}, {"+OK\r\n+OK\r\n", LINKPOOL_EUNAVAILABLE},
        {"hello\r\n", LINKPOOL_EUNAVAILABLE}, {"\n", LINKPOOL_EUNAVAILABLE}, {"+OK\n", POOL_READY}};
    struct user user;

    memset(long_line + 4, 'x', LINE_MOST - 4);
    memset(longest + 4, 'x', LINE_MOST - 4);
    memcpy(long_line + LINE_MOST, "\r\n", 3);
    memcpy(longest + LINE_MOST - 2, "\r\n", 3);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        up();
        server.to_user = cases[i].says;
        cr_assert(eq(int, hold(&user), cases[i].status), "case %u", i);
        down();
    }
}

Test(lineproto, an_answer_may_come_byte_by_byte)
{
    struct user user;

    up();
    testing_peer_drip(world.peer, 1, 0.01);
    cr_assert(eq(int, hold(&user), POOL_READY));
    pool_release(&user.lease, POOL_REUSE);
    down();
}

Test(lineproto, one_that_will_not_be_cleaned_is_closed)
{
    struct user user;

    up();
    server.to_reset = "-ERR no\r\n";
    cr_assert(eq(int, hold(&user), POOL_READY));
    ask(&user, "LIST\r\n");
    testing_run_for(world.t, 11); /* it is stable by now: its end is no verdict on its host */
    pool_release(&user.lease, POOL_REUSE);
    settle();
    cr_assert(eq(uint, testing_peer_open(world.peer), 0));
    cr_assert(eq(int, hold(&user), POOL_READY)); /* on another */
    cr_assert(eq(int, user.lease.reused, false));
    pool_release(&user.lease, POOL_DISCARD);
    down();
}

Test(lineproto, a_silent_link_is_asked_and_ends_when_it_does_not_answer)
{
    struct user user;

    up();
    cr_assert(eq(int, hold(&user), POOL_READY));
    pool_release(&user.lease, POOL_REUSE);
    testing_run_for(world.t, 40); /* idle_timeout is 55 s */
    cr_assert(eq(str, server.heard, "USER ann|PASS secret|RSET|PING|PING|"));
    cr_assert(eq(uint, testing_peer_open(world.peer), 1));
    cr_assert(eq(int, hold(&user), POOL_READY));
    cr_assert(eq(int, user.lease.reused, true));
    ask(&user, "LIST\r\n");
    pool_release(&user.lease, POOL_REUSE);
    server.to_ping = "";
    testing_run_for(world.t, 26);
    cr_assert(eq(uint, testing_peer_open(world.peer), 0));
    down();
}

Test(lineproto, a_server_that_was_restarted_is_logged_in_to_again)
{
    struct user user;

    up();
    cr_assert(eq(int, hold(&user), POOL_READY));
    ask(&user, "LIST\r\n");
    pool_release(&user.lease, POOL_REUSE);
    settle();
    testing_peer_behave(world.peer, TESTING_REFUSE);
    testing_peer_cut(world.peer, LINK_RESET);
    testing_run_for(world.t, 1);
    cr_assert(eq(int, hold(&user), LINKPOOL_EUNAVAILABLE));
    testing_peer_behave(world.peer, TESTING_ACCEPT);
    testing_run_for(world.t, 3);
    cr_assert(eq(int, hold(&user), POOL_READY));
    cr_assert(eq(str, server.heard, "USER ann|PASS secret|LIST|RSET|USER ann|PASS secret|"));
    pool_release(&user.lease, POOL_REUSE);
    down();
}

Test(lineproto, a_word_nobody_asked_for_ends_an_idle_link)
{
    struct user user;

    up();
    cr_assert(eq(int, hold(&user), POOL_READY));
    pool_release(&user.lease, POOL_REUSE);
    settle();
    testing_peer_say(world.peer, "+OK\r\n", 5);
    settle();
    cr_assert(eq(uint, testing_peer_open(world.peer), 0));
    down();
}
