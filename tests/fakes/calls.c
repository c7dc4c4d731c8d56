/* calls.c - see calls.h. A frame is a number of two bytes, what it is, how long its text is, and the text. */
#include "tests/fakes/calls.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 4,
    MOST = HEAD + 255,
    IDS = 4096
};

struct calls_link {
    unsigned char *in; /* MOST bytes, the link's own */
    size_t n_in;
    char given_up[IDS]; /* by number: an answer is to be swallowed */
};

struct calls_channel {
    uint16_t id; /* from 1 */
    bool is_refused, is_denied;
};

struct fake_calls_ways fake_calls_ways;

/* ---- the protocol ---- */

static struct calls_channel *state_of(const struct protocol_channel *pc)
{
    return pc->state;
}

static struct protocol_channel *find(struct protocol_link *pl, unsigned id)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        if (state_of(pc)->id == id)
            return pc;
    return NULL;
}

static int on_start(struct protocol_link *pl)
{
    const struct linkpool_env *env = protocol_env(pl);
    struct calls_link *self = pl->state;

    fake_calls_ways.attempt = protocol_attempt(pl);
    if (!(self->in = env->realloc(env->data, NULL, 0, MOST)))
        return protocol_fail(pl, LINK_NO_MEMORY, NULL);
    if (fake_calls_ways.room && protocol_set_room(pl, fake_calls_ways.room))
        return LINKPOOL_ELOST;
    return protocol_ready(pl);
}

static void on_end(struct protocol_link *pl)
{
    const struct linkpool_env *env = protocol_env(pl);
    struct calls_link *self = pl->state;

    if (!self->in)
        return;
    memset(self->in, '#', MOST); /* whoever looks at it sees that it is gone */
    env->realloc(env->data, self->in, MOST, 0);
    self->in = NULL;
}

static int deliver(struct protocol_link *pl)
{
    struct calls_link *self = pl->state;
    unsigned id = (unsigned)self->in[0] << 8 | self->in[1];
    struct protocol_channel *pc = find(pl, id);
    size_t n = self->in[3];

    self->n_in = 0;
    if (pc && self->in[2] == 'E')
        return protocol_end(pc, LINK_PROTOCOL_ERROR, true);
    if (pc && self->in[2] == 'R')
        return protocol_deliver_error(pc, 7, self->in + HEAD, n);
    if (pc)
        return protocol_deliver(pc, self->in + HEAD, n);
    if (self->given_up[id])
        fake_calls_ways.swallowed++;
    else
        fake_calls_ways.strays++;
    self->given_up[id] = 0;
    return 0;
}

static int let_write(struct protocol_link *pl)
{
    struct protocol_channel *pc = NULL;

    while (!fake_calls_ways.is_full && (pc = protocol_next_channel(pl, pc))) {
        if (!state_of(pc)->is_refused)
            continue;
        state_of(pc)->is_refused = false;
        if (protocol_writable(pc))
            return LINKPOOL_ELOST;
        pc = NULL;
    }
    return 0;
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    struct calls_link *self = pl->state;
    ssize_t got;

    if (events & LINKPOOL_WRITE && let_write(pl))
        return LINKPOOL_ELOST;
    for (;;) {
        size_t all = self->n_in < HEAD ? HEAD : HEAD + self->in[3];
        if (self->n_in == all) {
            if (deliver(pl))
                return LINKPOOL_ELOST;
            continue;
        }
        if ((got = protocol_read(pl, self->in + self->n_in, all - self->n_in)) < 0)
            return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
        self->n_in += (size_t)got;
    }
}

static bool is_free(struct protocol_link *pl, const struct protocol_channel *pc, unsigned id)
{
    const struct calls_link *self = pl->state;
    const struct protocol_channel *other = find(pl, id);

    return !self->given_up[id] && (!other || other == pc);
}

static int on_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    uint16_t id = 1;

    while (!is_free(pl, pc, id))
        id++;
    state_of(pc)->id = id;
    return 0;
}

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    unsigned char head[HEAD] = {
        (unsigned char)(state_of(pc)->id >> 8), (unsigned char)state_of(pc)->id, 'Q', (unsigned char)n};
    struct iovec parts[2] = {{head, HEAD}, {(void *)(uintptr_t)bytes, n}};
    struct fake_calls_ways *ways = &fake_calls_ways;
    int error = ways->error;
    ssize_t sent;

    ways->error = 0;
    if (error)
        return error;
    if (ways->dies) {
        ways->dies = false;
        return protocol_fail(pl, LINK_RESET, "told to");
    }
    if (ways->is_full) {
        state_of(pc)->is_refused = true;
        return LINKPOOL_EAGAIN;
    }
    if (ways->takes && !--ways->takes)
        ways->is_full = true;
    if ((sent = protocol_write(pl, parts, 2)) == LINKPOOL_ELOST)
        return LINKPOOL_ELOST;
    cr_assert(eq(long, (long)sent, (long)(HEAD + n)));
    return 0;
}

static void on_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    struct calls_link *self = pl->state;

    self->given_up[state_of(pc)->id] = cancelled;
}

const struct protocol fake_calls = {
    .size = sizeof(struct protocol),
    .name = "fake_calls",
    .flags = PROTOCOL_SHARED,
    .max_channels = 100,
    .link_size = sizeof(struct calls_link),
    .channel_size = sizeof(struct calls_channel),
    .start = on_start,
    .input = on_input,
    .open = on_open,
    .send = on_send,
    .close = on_close,
    .end = on_end,
};

/* ---- from outside ---- */

static struct protocol_link *latest(void)
{
    struct protocol_link *pl = protocol_attempt_link(fake_calls_ways.attempt);

    cr_assert(ne(ptr, pl, NULL));
    return pl;
}

static struct protocol_channel *channel_at(unsigned i)
{
    struct protocol_link *pl = latest();
    struct protocol_channel *pc = protocol_next_channel(pl, NULL);

    while (pc && i--)
        pc = protocol_next_channel(pl, pc);
    cr_assert(ne(ptr, pc, NULL));
    return pc;
}

void fake_calls_let(void)
{
    fake_calls_ways.is_full = false;
    let_write(latest());
}

void fake_calls_set_room(unsigned room)
{
    cr_assert(eq(int, protocol_set_room(latest(), room), 0));
}

void fake_calls_deliver(unsigned i, const char *text)
{
    protocol_deliver(channel_at(i), text, strlen(text));
}

void fake_calls_deliver_part(unsigned i, const char *text)
{
    protocol_deliver_part(channel_at(i), text, strlen(text), true);
}

void fake_calls_end(unsigned i, bool safe_to_repeat)
{
    protocol_end(channel_at(i), LINK_PROTOCOL_ERROR, safe_to_repeat);
}

void fake_calls_going(bool (*processed)(const struct protocol_channel *pc))
{
    protocol_going(latest(), processed, LINK_NO_REASON, NULL);
}

/* ---- the server ---- */

struct heard { /* of a connection, until a frame is whole */
    unsigned char bytes[MOST];
    size_t n;
    struct heard *next; /* of all there were: found until the process ends */
};

static struct heard *all_heard;

static void on_accepted(void *data, struct testing_conn *conn)
{
    struct heard *heard = calloc(1, sizeof *heard);

    (void)data;
    cr_assert(ne(ptr, heard, NULL));
    heard->next = all_heard;
    all_heard = heard;
    testing_conn_set_data(conn, heard);
}

static void speak(struct testing_conn *conn, uint16_t id, char what, const char *text)
{
    unsigned char frame[MOST] = {
        (unsigned char)(id >> 8), (unsigned char)id, (unsigned char)what, (unsigned char)strlen(text)};

    memcpy(frame + HEAD, text, strlen(text));
    testing_conn_send(conn, frame, HEAD + strlen(text));
}

static void on_frame(struct fake_server *server, struct testing_conn *conn, const unsigned char *frame)
{
    struct fake_request *request = &server->requests[server->n];

    cr_assert(lt(uint, server->n, FAKE_REQUESTS));
    cr_assert(lt(uint, frame[3], sizeof request->text));
    *request = (struct fake_request){.conn = conn, .id = (uint16_t)(frame[0] << 8 | frame[1])};
    memcpy(request->text, frame + HEAD, frame[3]);
    server->n++;
    if (!server->holds && !server->resets)
        fake_server_answer(server, server->n - 1, NULL);
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct heard *heard = testing_conn_data(conn);
    struct fake_server *server = data;

    for (size_t i = 0; i < n; i++) {
        heard->bytes[heard->n++] = ((const unsigned char *)bytes)[i];
        if (heard->n < HEAD || heard->n < HEAD + (size_t)heard->bytes[3])
            continue;
        heard->n = 0;
        on_frame(server, conn, heard->bytes);
    }
    if (server->resets)
        testing_conn_reset(conn);
}

static void on_closed(void *data, struct testing_conn *conn)
{
    struct fake_server *server = data;

    for (unsigned i = 0; i < server->n; i++)
        if (server->requests[i].conn == conn)
            server->requests[i].conn = NULL;
}

static struct fake_server *servers; /* so that they are found until the process ends */

struct fake_server *fake_server(struct fake_world *world, const char *address)
{
    struct fake_server *server = calloc(1, sizeof *server);
    struct testing_server on = {
        .size = sizeof on, .accepted = on_accepted, .received = on_received, .closed = on_closed, .data = server};

    cr_assert(ne(ptr, server, NULL));
    server->next = servers;
    servers = server;
    server->peer = fake_peer(world, address, TESTING_ACCEPT);
    testing_peer_on(server->peer, &on);
    return server;
}

void fake_server_answer(struct fake_server *server, unsigned i, const char *text)
{
    const struct fake_request *request = &server->requests[i];

    cr_assert(lt(uint, i, server->n));
    if (request->conn)
        speak(request->conn, request->id, 'A', text ? text : request->text);
}

void fake_server_deny(struct fake_server *server, unsigned i)
{
    cr_assert(lt(uint, i, server->n));
    if (server->requests[i].conn)
        speak(server->requests[i].conn, server->requests[i].id, 'E', "");
}

void fake_server_err(struct fake_server *server, unsigned i, const char *words)
{
    cr_assert(lt(uint, i, server->n));
    if (server->requests[i].conn)
        speak(server->requests[i].conn, server->requests[i].id, 'R', words);
}

const char *fake_server_heard(const struct fake_server *server)
{
    static char all[FAKE_REQUESTS * 8];
    char *end = all;

    *end = '\0';
    for (unsigned i = 0; i < server->n; i++)
        end += snprintf(end, (size_t)(all + sizeof all - end), "%s%s", i ? " " : "", server->requests[i].text);
    return all;
}

/* ---- callers ---- */

static struct protocol protocol; /* the hosts' */

void fake_calls_begin(struct fake_world *world)
{
    fake_world_begin(world);
    fake_calls_ways = (struct fake_calls_ways){0};
    protocol = fake_calls;
    world->host.protocol = &protocol;
}

static void on_done(struct pool_call *call)
{
    struct fake_caller *caller = call->data;
    size_t n = call->answer_size;

    cr_assert(lt(sz, n, sizeof caller->answer));
    caller->done++;
    caller->status = call->status;
    caller->told_at = testing_now(caller->world->t);
    caller->place = ++caller->world->told;
    cr_assert(eq(int, call->answer != NULL, call->status == 0 || call->status == LINKPOOL_EPEER));
    cr_assert(eq(uint, call->code, call->status == LINKPOOL_EPEER ? 7 : 0));
    if (caller->then)
        caller->then(caller); /* first: the answer is there until this returns */
    else if (call->answer)
        memcpy(caller->answer, call->answer, n), caller->answer[n] = '\0';
}

int fake_call(struct fake_world *world, struct fake_caller *caller, const char *text)
{
    unsigned told = world->told;

    caller->world = world;
    caller->call.data = caller;
    caller->call.done = on_done;
    caller->call.request = text;
    caller->call.request_size = text ? strlen(text) : 0;
    caller->status = pool_call(world->pool, &caller->call);
    cr_assert(eq(uint, world->told, told), "told inside pool_call()");
    return caller->status;
}

void fake_call_out(struct fake_world *world, struct fake_caller *caller, const char *text)
{
    cr_assert(eq(int, fake_call(world, caller, text), POOL_PENDING));
    fake_settle(world);
}

void fake_called(const struct fake_caller *caller, int status, enum pool_fate fate)
{
    cr_assert(eq(uint, caller->done, 1));
    cr_assert(eq(int, caller->status, status));
    cr_assert(eq(int, caller->call.fate, fate));
}
