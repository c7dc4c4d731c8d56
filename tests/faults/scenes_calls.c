/* scenes_calls.c - scenarios of calls and groups of calls over framed links: answered, refused, given up and lost. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "linkpool/framed.h"
#include "pool/call.h"
#include "tests/fakes/framed_server.h"
#include "tests/faults/scenes.h"

#define SERVER "10.0.8.1:80"

enum {
    CALLS_AT_ONCE = 40, /* more than one slab, and more than the first buckets of ids hold */
    LARGE = 40000
};

/* ---- the server: what a request begins with says what becomes of it ---- */

static void say(struct framed_session *session, const void *bytes, size_t n)
{
    testing_conn_send(framed_session_data(session), bytes, n);
}

static void request(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    static const char large[LARGE] = "L";

    switch (*(const char *)payload) {
    case 'e':
        framed_session_error(session, id, 300, "no");
        break;
    case 'n':
        framed_session_error(session, id, FRAMED_NOT_PROCESSED, "busy");
        break;
    case 'L':
        framed_session_answer(session, id, large, sizeof large);
        break;
    case 's':
        break;
    default:
        framed_session_answer(session, id, payload, n);
    }
}

static const struct framed_calls server = {.say = say, .request = request, .channels = 100};

static void on_accepted(void *data, struct testing_conn *conn)
{
    (void)data;
    testing_conn_set_data(conn, framed_session_new(&server, conn));
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    (void)data;
    cr_assert(eq(int, framed_session_take(testing_conn_data(conn), bytes, n), 0)); /* whatever fails, we make sense */
}

static void on_closed(void *data, struct testing_conn *conn)
{
    (void)data;
    framed_session_free(testing_conn_data(conn));
}

static struct testing_peer *peer;

static void with_server(struct scene *scene)
{
    peer = fake_peer(&scene->world, SERVER, TESTING_ACCEPT);

    testing_peer_on(peer, &(struct testing_server){.size = sizeof(struct testing_server),
                              .accepted = on_accepted,
                              .received = on_received,
                              .closed = on_closed});
    scene->world.host.max_links = 1;
}

/* ---- the callers ---- */

static struct pool_call calls[CALLS_AT_ONCE];
static struct pool_fanout group;
static unsigned started, told, group_told;

static bool may_end_so(const struct pool_call *call)
{
    switch (call->status) {
    case 0:
        return call->answer_size && !memcmp(call->answer, call->request, 1);
    case LINKPOOL_EPEER:
        return *(const char *)call->request == 'e' && call->code == 300;
    case LINKPOOL_ELOST:
    case LINKPOOL_EUNAVAILABLE:
    case LINKPOOL_ENOMEM:
        return true;
    case LINKPOOL_ETIMEDOUT:
        return *(const char *)call->request == 's' || call->fate != POOL_PARTIAL;
    default:
        return false;
    }
}

static void on_done(struct pool_call *call)
{
    told++;
    if (!may_end_so(call))
        cr_fatal("\"%s\": %s", (const char *)call->request, linkpool_strerror(call->status));
}

static void on_group(struct pool_fanout *over)
{
    group_told++;
    cr_assert(le(sz, over->answered + over->failed, over->n));
}

/* ---- what they do ---- */

static unsigned own_timers(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CALLS_AT_ONCE; i++)
        n += calls[i].status == POOL_PENDING && call__state(&calls[i])->has_timer;
    return n + (group.status == POOL_PENDING);
}

static struct pool_host *begin(struct scene *scene)
{
    scene->own_timers = own_timers;
    memset(calls, 0, sizeof calls);
    memset(&group, 0, sizeof group);
    started = told = group_told = 0;
    return scene_protocol(scene, SERVER, &protocol_framed);
}

static void prepare(struct pool_call *call, struct pool_host *host, const char *text)
{
    *call = (struct pool_call){
        .host = host, .request = text, .request_size = strlen(text), .timeout = 2, .retries = 1, .done = on_done};
}

static void call_all(struct scene *scene, struct pool_host *host, const char *text, unsigned n)
{
    for (unsigned i = 0; host && i < n; i++) {
        int status;
        prepare(&calls[i], host, text);
        if ((status = pool_call(scene->world.pool, &calls[i])) == POOL_PENDING)
            started++;
        else if (status != LINKPOOL_ENOMEM && status != LINKPOOL_EUNAVAILABLE)
            cr_fatal("%s", linkpool_strerror(status));
        scene_check(scene);
    }
}

static void end(struct scene *scene, struct pool_host *host)
{
    scene_run(scene, 6);
    cr_assert(eq(uint, told, started));
    if (scene->world.pool)
        cr_assert(eq(uint, fake_stats(&scene->world).waiting, 0));
    if (host)
        pool_host_drop(host);
}

static void called(struct scene *scene)
{
    struct pool_host *host = begin(scene);

    call_all(scene, host, "a", 1);
    scene_run(scene, 0.1);
    call_all(scene, host, "L", 2);
    scene_run(scene, 0.1);
    end(scene, host);
}
SCENARIO(called, .options = with_server);

static void called_by_many(struct scene *scene)
{
    struct pool_host *host = begin(scene);

    call_all(scene, host, "b", CALLS_AT_ONCE);
    end(scene, host);
}
SCENARIO(called_by_many, .options = with_server);

static void called_and_refused(struct scene *scene)
{
    struct pool_host *host = begin(scene);

    scene->natural = true;
    call_all(scene, host, "e", 3);
    scene_run(scene, 0.1);
    call_all(scene, host, "n", 3);
    end(scene, host);
}
SCENARIO(called_and_refused, .options = with_server);

/* Its connection takes little: requests wait in line. */
static void called_over_a_clog(struct scene *scene)
{
    static char text[3000];
    struct pool_host *host = begin(scene);

    memset(text, 'c', sizeof text - 1);
    call_all(scene, host, "c", 1);
    scene_run(scene, 0.1);
    testing_peer_window(peer, 0);
    call_all(scene, host, text, CALLS_AT_ONCE);
    scene_run(scene, 0.1);
    for (unsigned i = 0; i < CALLS_AT_ONCE; i += 5)
        if (!pool_call_cancel(&calls[i]))
            started--;
    testing_peer_window(peer, SIZE_MAX);
    end(scene, host);
}

static void clogged(struct scene *scene)
{
    with_server(scene);
    testing_send_buffer(scene->world.t, 20000);
}
SCENARIO(called_over_a_clog, .options = clogged);

static void called_and_silent(struct scene *scene)
{
    struct pool_host *host = begin(scene);

    scene->natural = true;
    call_all(scene, host, "s", 4);
    scene_run(scene, 0.1);
    testing_peer_cut(peer, LINK_RESET);
    scene_run(scene, 0.1);
    call_all(scene, host, "s", 4);
    end(scene, host);
}
SCENARIO(called_and_silent, .options = with_server);

static void called_as_a_group(struct scene *scene)
{
    struct pool_host *host = begin(scene);
    int status;

    if (!host)
        return;
    for (unsigned i = 0; i < 6; i++) {
        prepare(&calls[i], host, i < 4 ? "g" : "s");
        calls[i].done = NULL;
    }
    group = (struct pool_fanout){.calls = calls, .n = 6, .wanted = 4, .timeout = 1, .done = on_group};
    status = pool_fanout(scene->world.pool, &group);
    if (status != POOL_PENDING && status != LINKPOOL_ENOMEM)
        cr_fatal("%s", linkpool_strerror(status));
    scene_run(scene, 2);
    cr_assert(eq(uint, group_told, status == POOL_PENDING));
    end(scene, host);
}
SCENARIO(called_as_a_group, .options = with_server);
