/* framed_stage.c - see framed_stage.h. */
#include "tests/fakes/framed_stage.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char framed_address[] = "10.0.0.1:80";

/* ---- the server ---- */

struct connection {
    struct framed_peer *server;
    struct testing_conn *conn;
};

static struct framed_peer *server_of(const struct framed_session *session)
{
    return ((struct connection *)framed_session_data(session))->server;
}

static void note(struct framed_peer *server, char what)
{
    size_t n = strlen(server->order);

    if (n + 1 < sizeof server->order)
        server->order[n] = what;
}

static void say(struct framed_session *session, const void *bytes, size_t n)
{
    testing_conn_send(((struct connection *)framed_session_data(session))->conn, bytes, n);
}

static bool hello(struct framed_session *session, const void *token, size_t n)
{
    struct framed_peer *server = server_of(session);

    server->n_hellos++;
    memset(server->token, 0, sizeof server->token);
    memcpy(server->token, token, n < sizeof server->token ? n : sizeof server->token - 1);
    return !server->turns_away;
}

static void request(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    struct framed_peer *server = server_of(session);

    note(server, 'q');
    if (server->n_asked < FRAMED_NOTES) {
        server->asked[server->n_asked].id = id;
        server->asked[server->n_asked].n = n;
        memset(server->asked[server->n_asked].text, 0, sizeof server->asked[0].text);
        memcpy(server->asked[server->n_asked].text, payload, n < 23 ? n : 23);
    }
    server->n_asked++;
    if (!server->holds)
        framed_session_answer(session, id, payload, n);
}

static void cancel(struct framed_session *session, uint32_t id)
{
    struct framed_peer *server = server_of(session);

    note(server, 'c');
    server->n_cancelled++;
    server->cancelled = id;
}

static void pong(struct framed_session *session, const void *eight)
{
    (void)eight;
    note(server_of(session), 'p');
    server_of(session)->n_pongs++;
}

static void goaway(struct framed_session *session, uint32_t code, const char *text, size_t n)
{
    (void)text, (void)n;
    note(server_of(session), 'g');
    server_of(session)->n_goaways++;
    server_of(session)->goaway_code = code;
}

static void on_accepted(void *data, struct testing_conn *conn)
{
    struct framed_peer *server = data;
    struct connection *connection = calloc(1, sizeof *connection);

    *connection = (struct connection){server, conn};
    server->session = framed_session_new(&server->calls, connection);
    testing_conn_set_data(conn, server->session);
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct framed_peer *server = data;
    struct framed_session *session = testing_conn_data(conn);

    if (framed_session_take(session, bytes, n)) {
        snprintf(server->fault, sizeof server->fault, "%s", framed_session_fault(session));
        testing_conn_close(conn);
    }
}

static void on_closed(void *data, struct testing_conn *conn)
{
    struct framed_peer *server = data;
    struct framed_session *session = testing_conn_data(conn);

    if (server->session == session)
        server->session = NULL;
    free(framed_session_data(session));
    framed_session_free(session);
}

void framed_peer_begin(struct framed_peer *server, struct testing_peer *peer)
{
    *server = (struct framed_peer){.peer = peer,
        .calls = {.say = say,
            .hello = hello,
            .request = request,
            .cancel = cancel,
            .pong = pong,
            .goaway = goaway,
            .channels = 100}};
    testing_peer_on(peer, &(struct testing_server){.size = sizeof(struct testing_server),
                              .accepted = on_accepted,
                              .received = on_received,
                              .closed = on_closed,
                              .data = server});
}

void framed_peer_say(struct framed_peer *server, const void *bytes, size_t n)
{
    cr_assert(ne(ptr, server->session, NULL));
    say(server->session, bytes, n);
}

struct testing_conn *framed_peer_connection(const struct framed_peer *server)
{
    return ((struct connection *)framed_session_data(server->session))->conn;
}

/* ---- the stage ---- */

void framed_stage_begin(struct framed_stage *stage)
{
    *stage = (struct framed_stage){0};
    fake_world_begin(&stage->world);
    framed_options_init(&stage->options);
    stage->protocol = framed_protocol(&stage->options);
    stage->world.host.protocol = &stage->protocol;
    stage->world.host.max_links = 1;
    stage->world.host.drain_timeout = 7;
    framed_peer_begin(&stage->server, fake_peer(&stage->world, framed_address, TESTING_ACCEPT));
}

void framed_stage_open(struct framed_stage *stage)
{
    fake_world_open(&stage->world);
}

void framed_stage_end(struct framed_stage *stage)
{
    pool_free(stage->world.pool);
    stage->world.pool = NULL;
    fake_settle(&stage->world);
    testing_peer_cut(stage->server.peer, LINK_RESET); /* one that reads no more has not seen our end */
    fake_settle(&stage->world);
    cr_assert(eq(str, stage->server.fault, "")); /* nothing that we ever said was wrong */
    fake_world_end(&stage->world);
}

const struct link *framed_link_of(struct framed_stage *stage)
{
    struct pool_host *host = fake_host(&stage->world, framed_address);

    cr_assert(ne(ptr, host, NULL));
    return pool_host_next_link(host, NULL);
}

struct link_stats framed_stats(struct framed_stage *stage)
{
    const struct link *link = framed_link_of(stage);
    struct link_stats stats;

    cr_assert(ne(ptr, (void *)link, NULL));
    link_stats(link, &stats, sizeof stats);
    return stats;
}

void framed_fill(unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i % 251);
}

/* ---- callers ---- */

static struct framed_caller *caller_of(struct channel *channel)
{
    return channel_data(channel);
}

static void say_again(struct framed_caller *caller)
{
    const char *again = caller->again;

    caller->again = NULL;
    if (again)
        caller->sent = channel_send(caller->user.lease.channel, again, strlen(again));
}

static void hear(struct framed_caller *caller, const void *bytes, size_t n)
{
    caller->n = n;
    memset(caller->answer, 0, sizeof caller->answer);
    memcpy(caller->answer, bytes, n < sizeof caller->answer ? n : sizeof caller->answer - 1);
    say_again(caller);
    if (caller->releases)
        fake_give_back(&caller->user);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    caller_of(channel)->answers++;
    hear(caller_of(channel), bytes, n);
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    caller_of(channel)->errors++;
    caller_of(channel)->code = code;
    hear(caller_of(channel), words, n);
}

static void on_writable(struct channel *channel)
{
    struct framed_caller *caller = caller_of(channel);

    caller->writables++;
    if (caller->clock)
        caller->at = ++*caller->clock;
    say_again(caller);
}

static const struct channel_events events = {.message = on_message, .error = on_error, .writable = on_writable};

void framed_hold(struct framed_stage *stage, struct framed_caller *caller)
{
    fake_hold(&stage->world, &caller->user, framed_address);
    channel_set_data(caller->user.lease.channel, caller);
    cr_assert(eq(int, channel_watch(caller->user.lease.channel, &events, 0), 0));
}

int framed_send(struct framed_caller *caller, const void *bytes, size_t n)
{
    return channel_send(caller->user.lease.channel, bytes, n);
}

int framed_call(struct framed_stage *stage, struct framed_caller *caller, const char *question)
{
    framed_hold(stage, caller);
    return framed_send(caller, question, strlen(question));
}
