/* lines_test.c - calls over a shared protocol of lines from outside: answered in order over one link, given up without
 * a stranger's answer, refused in the server's words, asked for a sign of life. In virtual time, and on a real loop. */
#include <stdio.h>
#include <string.h>

#include "lines.h"
#include "stage.h"

enum {
    CALLS = 40
};

struct server {
    char in[LINES_LONGEST];
    size_t n;
    unsigned asked, pinged, logins;
    bool holds; /* it answers nothing that is no login */
    const char *to_password;
    struct testing_conn *conn;
};

struct play {
    struct stage stage;
    struct server server;
    struct lines_login login;
    struct protocol protocol;
    struct pool_call calls[CALLS];
    char requests[CALLS][16];
    unsigned told, right, denied;
};

/* ---- the server ---- */

static void answer(struct server *server, const char *line)
{
    char text[LINES_LONGEST + 8];

    snprintf(text, sizeof text, "+OK %s\r\n", line);
    if (strncmp(line, "PASS", 4) == 0) {
        server->logins++;
        if (server->to_password != NULL)
            snprintf(text, sizeof text, "%s\r\n", server->to_password);
    } else if (strncmp(line, "USER", 4) != 0) {
        server->pinged += strcmp(line, "PING") == 0;
        server->asked += strcmp(line, "PING") != 0;
        if (server->holds)
            return;
    }
    expect(testing_conn_send(server->conn, text, strlen(text)) == 0);
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct server *server = data;

    server->conn = conn;
    for (size_t i = 0; i < n; i++) {
        char byte = ((const char *)bytes)[i];
        if (byte == '\r')
            continue;
        expect(server->n < sizeof server->in);
        server->in[server->n++] = byte == '\n' ? '\0' : byte;
        if (byte == '\n') {
            server->n = 0;
            answer(server, server->in);
        }
    }
}

/* ---- the callers ---- */

static void on_done(struct pool_call *call)
{
    struct play *play = call->data;
    char expected[32];

    snprintf(expected, sizeof expected, "+OK %s", (const char *)call->request);
    play->told++;
    if (call->status == 0 && call->answer_size == strlen(expected) &&
        memcmp(call->answer, expected, call->answer_size) == 0)
        play->right++;
    if (call->status == LINKPOOL_EPEER && call->code == LINES_REFUSED && call->answer_size == 7 &&
        memcmp(call->answer, "-ERR no", 7) == 0)
        play->denied++;
}

static bool all_told(void *data)
{
    return ((struct play *)data)->told == CALLS;
}

static bool one_told(void *data)
{
    return ((struct play *)data)->told > 0;
}

static void call(struct play *play, unsigned i, double timeout)
{
    snprintf(play->requests[i], sizeof play->requests[i], "GET %u", i);
    play->calls[i] = (struct pool_call){.to = testing_peer_address(play->stage.peer),
        .request = play->requests[i],
        .request_size = strlen(play->requests[i]),
        .done = on_done,
        .data = play,
        .timeout = timeout};
    expect(pool_call(play->stage.pool, &play->calls[i]) == POOL_PENDING);
}

static void begin(struct play *play, bool real, const char *to_password)
{
    struct pool_host_options options;
    struct testing_server server = {.size = sizeof server, .received = on_received, .data = &play->server};

    memset(play, 0, sizeof *play);
    play->server.to_password = to_password;
    play->login = (struct lines_login){"ann", "secret"};
    play->protocol = lines_protocol(&play->login);
    pool_host_options_init(&options);
    options.protocol = &play->protocol;
    options.max_links = 1;
    options.max_unanswered = 0;
    stage_up(&play->stage, real, &options);
    testing_peer_on(play->stage.peer, &server);
}

/* ---- the scenarios ---- */

/* More calls than channels, in as many pieces as the peer likes. */
static void many(bool real, size_t piece)
{
    struct play play;

    begin(&play, real, NULL);
    if (piece > 0)
        testing_peer_drip(play.stage.peer, piece, 0.0001);
    for (unsigned i = 0; i < CALLS; i++)
        call(&play, i, 10);
    stage_until(&play.stage, all_told, &play);
    expect(play.right == CALLS && play.server.asked == CALLS && play.server.logins == 1);
    stage_down(&play.stage);
}

/* One gives up; its answer comes before that of the next, which gets its own. */
static void given_up(bool real)
{
    struct play play;

    begin(&play, real, NULL);
    call(&play, 0, 10);
    stage_until(&play.stage, one_told, &play);
    play.server.holds = true;
    call(&play, 1, 0.001);
    play.told = 0;
    stage_until(&play.stage, one_told, &play);
    expect(play.calls[1].status == LINKPOOL_ETIMEDOUT && play.calls[1].fate == POOL_SENT_NO_ANSWER);
    play.server.holds = false;
    expect(testing_conn_send(play.server.conn, "+OK GET 1\r\n", 11) == 0);
    call(&play, 2, 10);
    play.told = 0;
    stage_until(&play.stage, one_told, &play);
    expect(play.right == 2 && play.server.logins == 1);
    stage_down(&play.stage);
}

static void refused(bool real)
{
    struct play play;
    char how[256];

    begin(&play, real, "-ERR not you");
    call(&play, 0, 10);
    stage_until(&play.stage, one_told, &play);
    expect(play.calls[0].status == LINKPOOL_EUNAVAILABLE && play.calls[0].reason == LINK_HANDSHAKE_FAILED);
    expect(play.calls[0].fate == POOL_NOT_SENT);
    pool_host_explain(pool_host(play.stage.pool, testing_peer_address(play.stage.peer)), how, sizeof how);
    expect(strstr(how, "-ERR not you") != NULL);
    stage_down(&play.stage);
}

/* Silent for a minute, but for its pings; an answer to nothing ends the link. */
static void silent(void)
{
    struct play play;

    begin(&play, false, NULL);
    call(&play, 0, 10);
    stage_until(&play.stage, one_told, &play);
    testing_run_for(play.stage.t, 50);
    expect(play.server.pinged == 3 && testing_peer_open(play.stage.peer) == 1);
    expect(testing_conn_send(play.server.conn, "+OK\r\n", 5) == 0);
    testing_run_for(play.stage.t, 1);
    expect(testing_peer_open(play.stage.peer) == 0);
    stage_down(&play.stage);
}

static void denied(void)
{
    struct play play;

    begin(&play, false, NULL);
    call(&play, 0, 10);
    stage_until(&play.stage, one_told, &play);
    play.server.holds = true;
    call(&play, 1, 10);
    testing_run_for(play.stage.t, 1);
    expect(testing_conn_send(play.server.conn, "-ERR no\r\n", 9) == 0);
    play.told = 0;
    stage_until(&play.stage, one_told, &play);
    expect(play.denied == 1);
    stage_down(&play.stage);
}

/* What can be no line is refused alone, the others go on. */
static void two_lines(void)
{
    struct play play;

    begin(&play, false, NULL);
    call(&play, 0, 10);
    stage_until(&play.stage, one_told, &play);
    play.calls[1] = (struct pool_call){.to = testing_peer_address(play.stage.peer),
        .request = "GET 1\nGET 2",
        .request_size = 11,
        .done = on_done,
        .data = &play};
    expect(pool_call(play.stage.pool, &play.calls[1]) == LINKPOOL_EINVAL);
    call(&play, 2, 10);
    play.told = 0;
    stage_until(&play.stage, one_told, &play);
    expect(play.right == 2);
    stage_down(&play.stage);
}

int main(void)
{
    for (int real = 0; real < 2; real++) {
        many(real, 0);
        many(real, real ? 100 : 1);
        given_up(real);
        refused(real);
    }
    silent();
    denied();
    two_lines();
    puts("lines_test: passed");
    return 0;
}
