/* calls.c - a script of calls and faults: calls and groups of them are made and given up, their servers answer, err,
 * limit, leave, fall silent and cut, time goes on, memory and system calls fail, the pool is drained and freed. The
 * first byte chooses the world, each three more are an order; what does not hold aborts.
 *
 * What holds: a call that is under way is told once, at its deadline at the latest, with its own answer; a group is
 * told once; our servers find nothing wrong in what they hear; and nothing is left behind. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"
#include "tests/fakes/framed_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define HOLDS(condition) ((condition) ? (void)0 : does_not_hold(#condition, __LINE__))

static void does_not_hold(const char *what, int line)
{
    fprintf(stderr, "calls.c:%d: does not hold: %s\n", line, what);
    abort();
}

enum {
    CALLERS = 24,
    GROUPS = 3,
    OF_GROUP = 5,
    SERVERS = 2,
    NOTED = 64,
    LARGEST = 8 + 255 * 40
};

struct caller {
    struct pool_call call;
    struct group *group; /* NULL: alone */
    bool is_out;
    uint8_t then;     /* what it does once it is told */
    uint32_t serial;  /* of its request */
    double told_till; /* the latest */
    uint8_t request[LARGEST];
};

struct group {
    struct pool_fanout fanout;
    struct pool_call calls[OF_GROUP];
    uint8_t requests[OF_GROUP][8];
    bool is_out;
    unsigned told[OF_GROUP];
};

struct server {
    struct testing_peer *peer;
    struct framed_calls calls;
    bool holds;
    struct connection *newest;
    struct {
        struct framed_session *session; /* NULL: it is over */
        uint32_t id;
        size_t n;
        uint8_t bytes[LARGEST];
    } asked[NOTED];
    unsigned n_asked;
};

struct connection {
    struct server *server;
    struct testing_conn *conn;
    struct framed_session *session;
};

static const char *const addresses[SERVERS] = {"10.0.0.1:80", "10.0.0.2:80"};

static struct {
    struct testing *t;
    struct pool *pool; /* NULL: freed */
    bool garbled;      /* a server has said what it should not: anything may come of it */
    bool is_calm;      /* nothing has gone wrong, and the servers answer at once: so must each call be */
    uint32_t serial;
    struct caller callers[CALLERS];
    struct group groups[GROUPS];
    struct server servers[SERVERS];
} life;

static void free_pool(void)
{
    struct pool *pool = life.pool;

    life.pool = NULL;
    pool_free(pool);
}

/* ---- the servers ---- */

static void say(struct framed_session *session, const void *bytes, size_t n)
{
    testing_conn_send(((struct connection *)framed_session_data(session))->conn, bytes, n); /* it may be over */
}

static void on_request(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    struct server *server = ((struct connection *)framed_session_data(session))->server;
    unsigned at = server->n_asked % NOTED;

    if (!server->holds) {
        framed_session_answer(session, id, payload, n);
        return;
    }
    HOLDS(n <= LARGEST);
    server->asked[at].session = session;
    server->asked[at].id = id;
    server->asked[at].n = n;
    memcpy(server->asked[at].bytes, payload, n);
    server->n_asked++;
}

static void on_accepted(void *data, struct testing_conn *conn)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct server *server = data;

    connection->server = server;
    connection->conn = conn;
    connection->session = framed_session_new(&server->calls, connection);
    server->newest = connection;
    testing_conn_set_data(conn, connection);
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct connection *connection = testing_conn_data(conn);

    (void)data;
    if (!connection || !framed_session_take(connection->session, bytes, n))
        return;
    if (!life.garbled)
        fprintf(stderr, "calls.c: %s\n", framed_session_fault(connection->session));
    HOLDS(life.garbled);
    testing_conn_reset(conn);
}

static void on_conn_closed(void *data, struct testing_conn *conn)
{
    struct connection *connection = testing_conn_data(conn);
    struct server *server = data;

    if (!connection) /* one that was accepted to be ended, or to be silent */
        return;
    for (int i = 0; i < NOTED; i++)
        if (server->asked[i].session == connection->session)
            server->asked[i].session = NULL;
    if (server->newest == connection)
        server->newest = NULL;
    framed_session_free(connection->session);
    free(connection);
}

static void begin_server(struct server *server, const char *address, bool holds)
{
    server->peer = testing_peer_add(life.t, address, TESTING_ACCEPT);
    server->holds = holds;
    server->calls = (struct framed_calls){.say = say, .request = on_request, .channels = 10};
    testing_peer_on(server->peer, &(struct testing_server){.size = sizeof(struct testing_server),
                                      .accepted = on_accepted,
                                      .received = on_received,
                                      .closed = on_conn_closed,
                                      .data = server});
}

/* Answers one of those it holds: with itself, or with words of an error. */
static void answer(struct server *server, uint8_t which, uint32_t code)
{
    unsigned at = which % NOTED;
    struct framed_session *session = server->asked[at].session;

    server->asked[at].session = NULL;
    if (session && code)
        framed_session_error(session, server->asked[at].id, code, "error");
    else if (session)
        framed_session_answer(session, server->asked[at].id, server->asked[at].bytes, server->asked[at].n);
}

static void answer_all(struct server *server, bool backwards)
{
    for (unsigned i = 0; i < NOTED; i++)
        answer(server, (uint8_t)(backwards ? NOTED - 1 - i : i), 0);
}

/* ---- the callers ---- */

static bool is_own(const struct pool_call *call)
{
    if (life.garbled)
        return true;
    return call->answer_size == call->request_size && !memcmp(call->answer, call->request, call->answer_size);
}

static void check_outcome(const struct pool_call *call)
{
    HOLDS(call->status != POOL_PENDING);
    HOLDS((call->code != 0) == (call->status == LINKPOOL_EPEER));
    if (call->status == 0)
        HOLDS(is_own(call));
    else if (call->status == LINKPOOL_EPEER)
        HOLDS(life.garbled || (call->answer_size == 5 && !memcmp(call->answer, "error", 5)));
    else
        HOLDS(!call->answer && linkpool_strerror(call->status));
    HOLDS(call->status == 0 || call->status == LINKPOOL_EPEER || !life.is_calm);
    HOLDS(call->attempts <= 1 + call->retries);
    HOLDS(call->status != 0 || call->attempts);
}

static void call_by(struct caller *caller, uint8_t a, uint8_t b);

static void cancel(struct caller *caller)
{
    if (!life.pool)
        return;
    HOLDS((pool_call_cancel(&caller->call) == 0) == caller->is_out);
    caller->is_out = false;
}

static void do_then(struct caller *caller)
{
    struct caller *other = &life.callers[caller->then / 8 % CALLERS];
    uint8_t then = caller->then;

    caller->then = (uint8_t)(then >> 1); /* no caller goes on for ever */
    switch (then % 8) {
    case 1:
    case 2:
        call_by(caller, then, 0);
        break;
    case 3:
        cancel(other);
        break;
    case 4:
        if (then > 128 && life.pool)
            free_pool();
        break;
    default:
        break;
    }
}

static void on_done(struct pool_call *call)
{
    struct caller *caller = call->data;

    HOLDS(caller->is_out);
    caller->is_out = false;
    check_outcome(call);
    HOLDS(testing_now(life.t) <= caller->told_till + 1e-6);
    do_then(caller);
}

static void call_by(struct caller *caller, uint8_t a, uint8_t b)
{
    static const double timeouts[] = {0, 0.05, 1, INFINITY};
    struct pool_call *call = &caller->call;

    if (!life.pool)
        return;
    if (caller->is_out) {
        HOLDS(pool_call(life.pool, call) == LINKPOOL_ESTATE);
        return;
    }
    *call = (struct pool_call){.done = on_done,
        .data = caller,
        .to = a % 3 == 2 ? "both" : addresses[a % 3],
        .request = caller->request,
        .request_size = 8 + 40u * b,
        .timeout = timeouts[a / 3 % 4],
        .flags = (a & 32 ? POOL_CALL_WAIT_FOR_READY : 0) | (a & 64 ? POOL_CALL_SAFE_TO_REPEAT : 0),
        .retries = a & 128 ? 2 : 0};
    caller->serial = ++life.serial;
    caller->told_till = testing_now(life.t) + (call->timeout > 0 ? call->timeout : 5);
    memcpy(caller->request, &caller->serial, sizeof caller->serial);
    caller->is_out = true;
    int status = pool_call(life.pool, call);
    HOLDS(status == POOL_PENDING || status < 0);
    HOLDS(status == call->status);
    caller->is_out = status == POOL_PENDING;
}

/* ---- groups ---- */

static void on_of_group(struct pool_call *call)
{
    struct group *group = call->data;
    size_t i = (size_t)(call - group->calls);

    HOLDS(group->is_out && !group->told[i]++);
    check_outcome(call);
}

static void on_group(struct pool_fanout *fanout)
{
    struct group *group = fanout->data;
    size_t wanted = fanout->wanted ? fanout->wanted : fanout->n, answered = 0;

    HOLDS(group->is_out);
    group->is_out = false;
    HOLDS(fanout->status != POOL_PENDING && fanout->answered + fanout->failed <= fanout->n);
    HOLDS((fanout->status == 0) == (fanout->answered >= wanted));
    for (size_t i = 0; i < fanout->n; i++) {
        HOLDS(fanout->calls[i].status != POOL_PENDING);
        answered += fanout->calls[i].status == 0;
    }
    HOLDS(answered == fanout->answered);
}

static void fan_out(struct group *group, uint8_t a, uint8_t b)
{
    if (!life.pool || group->is_out)
        return;
    memset(group, 0, sizeof *group);
    for (int i = 0; i < OF_GROUP; i++) {
        uint32_t serial = ++life.serial;
        memcpy(group->requests[i], &serial, sizeof serial);
        group->calls[i] = (struct pool_call){.to = (a >> i & 1) ? addresses[i % 2] : "both",
            .done = b & 1 ? on_of_group : NULL,
            .data = group,
            .request = group->requests[i],
            .request_size = 8,
            .retries = b & 2 ? 1 : 0};
    }
    group->fanout = (struct pool_fanout){.calls = group->calls,
        .n = OF_GROUP,
        .wanted = b / 4 % (OF_GROUP + 1),
        .flags = b & 64 ? POOL_FANOUT_HEAR_ALL : 0,
        .timeout = b & 32 ? 0.5 : 2,
        .done = on_group,
        .data = group};
    group->is_out = true;
    int status = pool_fanout(life.pool, &group->fanout);
    HOLDS(status == POOL_PENDING || status < 0);
    group->is_out = status == POOL_PENDING;
}

static void cancel_group(struct group *group)
{
    if (!life.pool)
        return;
    HOLDS((pool_fanout_cancel(&group->fanout) == 0) == group->is_out);
    group->is_out = false;
}

/* ---- orders ---- */

static void fail_call(uint8_t a, uint8_t b)
{
    static const int errors[] = {EAGAIN, EINTR, ECONNRESET, EPIPE, ENOBUFS, ETIMEDOUT};
    int which = b / 16 % 6;

    testing_fail_call(life.t, (enum testing_call)(a % TESTING_CLOSE), b % 16, errors[which],
        which > 1 && a > 128); /* "try again" for ever would be no socket */
}

static void say_garbage(struct server *server, const uint8_t *at)
{
    uint8_t head[12] = {0, 0, 0, at[1], (uint8_t)(at[2] % 12), 0, 0, 0, 0, 0, 0, (uint8_t)(at[2] / 12)};

    life.garbled = true;
    testing_peer_say(server->peer, head, at[2] & 1 ? 12 : at[1] % 12);
}

static void obey_session(struct framed_session *session, const uint8_t *at)
{
    switch (at[0] % 32) {
    case 8:
        framed_session_limit(session, at[1] % 16);
        break;
    case 9:
        framed_session_ping(session, "eight by");
        break;
    default:
        framed_session_goaway(session,
            framed_session_last_id(session) - at[1] % 4 % (framed_session_last_id(session) + 1),
            at[1] & 16 ? FRAMED_TOO_MANY_PINGS : FRAMED_NO_ERROR, "bye");
    }
}

static void on_drained(struct pool *pool, void *data)
{
    (void)pool;
    (void)data;
}

/* Calls and groups are made and given up, and time goes on. */
static bool is_harmless(uint8_t order)
{
    return order <= 4 || order == 14 || order == 18 || order > 25;
}

static void obey(const uint8_t *at)
{
    struct server *server = &life.servers[at[1] & 1];

    life.is_calm &= is_harmless(at[0] % 32);
    switch (at[0] % 32) {
    case 0:
    case 1:
        for (int i = 0; i < 6; i++)
            call_by(&life.callers[(at[1] + i) % CALLERS], (uint8_t)(at[2] + i), 0);
        break;
    case 2:
    case 3:
        call_by(&life.callers[at[0] / 32 * 3], at[1], at[2]);
        break;
    case 4:
        cancel(&life.callers[at[1] % CALLERS]);
        break;
    case 5:
        answer(server, at[2], 0);
        break;
    case 6:
        answer(server, at[2], at[1] & 2 ? FRAMED_NOT_PROCESSED : 300);
        break;
    case 7:
        answer_all(server, at[2] & 1);
        break;
    case 8:
    case 9:
    case 10:
        if (server->newest && framed_session_is_open(server->newest->session))
            obey_session(server->newest->session, at);
        break;
    case 11:
        testing_peer_cut(server->peer, at[2] & 1 ? LINK_RESET : at[2] & 2 ? LINK_CLOSED_BY_PEER : LINK_TIMED_OUT);
        break;
    case 12:
        server->holds = at[2] & 1;
        break;
    case 13:
        testing_peer_window(server->peer, at[2] & 1 ? SIZE_MAX : at[2] * 16u);
        break;
    case 14:
        testing_run_for(life.t, at[2] / 50.0);
        break;
    case 15:
        testing_fail_allocation(life.t, at[1] % 64, at[2] > 250);
        break;
    case 16:
        fail_call(at[1], at[2]);
        break;
    case 17:
        fan_out(&life.groups[at[0] / 32 % GROUPS], at[1], at[2]);
        break;
    case 18:
        cancel_group(&life.groups[at[1] % GROUPS]);
        break;
    case 19:
        life.callers[at[1] % CALLERS].then = at[2];
        break;
    case 20:
        testing_peer_drip(server->peer, at[2] % 64, 0.001);
        break;
    case 21:
        if (at[2] > 200)
            say_garbage(server, at);
        break;
    case 22:
        testing_peer_behave(server->peer, (enum testing_behaviour)(at[2] % (TESTING_NO_HOST + 1)));
        break;
    case 23:
        if (life.pool && at[2] > 240)
            pool_drain(life.pool, at[1] / 50.0, on_drained, NULL);
        break;
    case 24:
        if (life.pool && at[1] == at[2])
            free_pool();
        break;
    case 25:
        server->calls.channels = at[2] % 12;
        server->calls.silent = at[2] > 200;
        break;
    default:
        testing_run_for(life.t, 0.02);
    }
    if (at[0] & 128)
        testing_run_for(life.t, 0.001);
}

/* ---- the world ---- */

static void add_target(void)
{
    struct pool_endpoint endpoints[SERVERS] = {{0}};
    struct pool_target_options options;

    for (int i = 0; i < SERVERS; i++) {
        endpoints[i].size = sizeof endpoints[i];
        endpoints[i].address = addresses[i];
    }
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = SERVERS;
    HOLDS(pool_target_add(life.pool, "both", &options));
}

static void begin(const struct protocol *protocol, uint8_t ways)
{
    struct pool_host_options host;
    struct pool_options options;

    memset(&life, 0, sizeof life);
    life.is_calm = !(ways & 1);
    life.t = testing_new(1);
    for (int i = 0; i < SERVERS; i++)
        begin_server(&life.servers[i], addresses[i], ways & 1);
    testing_send_buffer(life.t, ways & 2 ? 1500 : 65536);
    testing_short_writes(life.t, ways & 4);
    testing_early_alarms(life.t, ways & 8);
    testing_shuffle(life.t, ways & 16);
    pool_host_options_init(&host);
    host.protocol = protocol;
    host.max_links = ways & 32 ? 1 : 3;
    host.spread_links = ways & 64;
    if (!(ways & 128))
        host.heartbeat = &heartbeat_none;
    pool_options_init(&options);
    options.host = &host;
    options.env = testing_env(life.t);
    options.max_call_bytes = 40000;
    HOLDS((life.pool = pool_new_on(testing_driver(life.t), &options)));
    add_target();
}

static void end(void)
{
    testing_fail_allocation(life.t, 0, false);
    for (int i = 0; i < TESTING_CALLS; i++)
        testing_fail_call(life.t, (enum testing_call)i, 0, 0, false);
    for (int i = 0; i < CALLERS; i++)
        life.callers[i].then = 0;
    testing_run_for(life.t, 6); /* longer than any time a call is given */
    for (int i = 0; i < CALLERS; i++)
        HOLDS(!life.callers[i].is_out || life.callers[i].told_till == INFINITY);
    if (life.pool)
        free_pool();
    for (int i = 0; i < CALLERS; i++)
        HOLDS(!life.callers[i].is_out);
    for (int i = 0; i < GROUPS; i++)
        HOLDS(!life.groups[i].is_out);
    for (int i = 0; i < SERVERS; i++)
        testing_peer_cut(life.servers[i].peer, LINK_RESET); /* one that reads no more has not seen our end */
    testing_run_for(life.t, 0.1);
    HOLDS(testing_blocks(life.t) == 0);
    HOLDS(testing_open_descriptors(life.t) == 0);
    HOLDS(testing_misuses(life.t) == 0);
    HOLDS(!testing_stuck(life.t));
    for (int i = 0; i < SERVERS; i++)
        testing_peer_free(life.servers[i].peer);
    testing_free(life.t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct framed_options options;
    struct protocol protocol;

    if (n < 4)
        return 0;
    framed_options_init(&options);
    options.max_queue = 4096;
    options.max_channel_queue = 2048;
    protocol = framed_protocol(&options);
    begin(&protocol, data[0]);
    for (size_t i = 1; i + 3 <= n && i < 400; i += 3)
        obey(data + i);
    end();
    return 0;
}
