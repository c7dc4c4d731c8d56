/* frame.c - any bytes as what a framed link reads, as orders to its writer, and as the life of a link: calls, answers,
 * cuts, and a peer that says whatever it likes. The first byte chooses; what does not hold aborts.
 *
 * The rules of the wire are written here a second time, so that the reader is held against them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"
#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define HOLDS(condition) ((condition) ? (void)0 : does_not_hold(#condition, __LINE__))

static void does_not_hold(const char *what, int line)
{
    fprintf(stderr, "frame.c:%d: does not hold: %s\n", line, what);
    abort();
}

/* ---- memory that is counted ---- */

static size_t in_use;

static void *counted(void *data, void *memory, size_t was, size_t size)
{
    (void)data;
    in_use += size - was;
    if (size)
        return realloc(memory, size);
    free(memory);
    return NULL;
}

static const struct linkpool_env env = {.realloc = counted};

/* ---- the reader ---- */

enum {
    LARGEST = 50000,
    FRAMES = 512
};

struct seen {
    uint32_t n, id, sum;
    uint8_t type;
};

static uint32_t sum_of(const uint8_t *bytes, size_t n)
{
    uint32_t sum = 2166136261u;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

/* The page's rules. */
static bool may_stand(const uint8_t *head, unsigned allowed)
{
    static const uint32_t least[] = {0, 8, 12, 4, 0, 0, 4, 0, 8, 8, 8};
    static const uint32_t most[] = {0, 4104, 12, 4, LARGEST, LARGEST, 1028, 0, 8, 8, 1032};
    uint32_t n = framed__get32(head), id = framed__get32(head + 8);
    bool about = head[4] >= 4 && head[4] <= 7;

    if (head[4] < 1 || head[4] > 10 || !(allowed >> head[4] & 1) || head[5] || head[6] || head[7])
        return false;
    if (n < least[head[4]] || n > most[head[4]])
        return false;
    return about ? id >= 1 && id <= 2147483647u : id == 0;
}

/* What should be found. @return frames; *wrong: the stream ends with a header that may not stand there. */
static size_t expected(const uint8_t *data, size_t n, unsigned allowed, struct seen *frames, bool *wrong)
{
    size_t found = 0;

    *wrong = false;
    while (n >= 12 && found < FRAMES) {
        if (!may_stand(data, allowed)) {
            *wrong = true;
            break;
        }
        uint32_t body = framed__get32(data);
        if (n - 12 < body)
            break;
        frames[found++] =
            (struct seen){.n = body, .id = framed__get32(data + 8), .type = data[4], .sum = sum_of(data + 12, body)};
        data += 12 + body;
        n -= 12 + body;
    }
    return found;
}

static int drain(struct framed_reader *reader, const uint8_t *bytes, size_t n, struct seen *frames, size_t *found)
{
    struct framed_frame frame;
    char why[96] = "";
    int status;

    while ((status = framed__next(reader, &bytes, &n, &frame, why, sizeof why)) == FRAMED_FRAME) {
        HOLDS(*found < FRAMES);
        frames[(*found)++] = (struct seen){.n = frame.head.n,
            .id = frame.head.id,
            .type = frame.head.type,
            .sum = sum_of(frame.payload, frame.head.n)};
        framed__frame_done(&env, &frame);
    }
    HOLDS(status == FRAMED_MORE ? n == 0 : *why != '\0');
    return status;
}

/* One piece, by either way in. */
static int feed(struct framed_reader *reader, const uint8_t *data, size_t n, struct seen *frames, size_t *found)
{
    unsigned char *room;
    size_t much = framed__room(reader, &room);
    uint8_t *piece;
    int status;

    if (much >= n) {
        memcpy(room, data, n);
        framed__filled(reader, n);
        return drain(reader, data, 0, frames, found);
    }
    piece = malloc(n + !n); /* to the byte, so that reading beyond is seen */
    memcpy(piece, data, n);
    status = drain(reader, piece, n, frames, found);
    free(piece);
    return status;
}

static void read_stream(const uint8_t *data, size_t n, unsigned allowed, size_t step, size_t other)
{
    static struct seen should[FRAMES], frames[FRAMES];
    struct framed_reader reader = {.env = &env, .max_payload = LARGEST, .allowed = allowed};
    size_t found = 0, n_should, fed = 0;
    int status = FRAMED_MORE;
    bool wrong;

    n_should = expected(data, n, allowed, should, &wrong);
    for (unsigned turn = 0; fed < n && status == FRAMED_MORE; turn++) {
        size_t some = turn % 2 ? other : step;
        if (some > n - fed)
            some = n - fed;
        status = feed(&reader, data + fed, some, frames, &found);
        fed += some;
        HOLDS(in_use <= 2 * fed + 4096);
    }
    HOLDS(found == n_should);
    HOLDS(!memcmp(frames, should, found * sizeof *frames));
    HOLDS(status == (wrong ? LINKPOOL_EINVAL : FRAMED_MORE));
    framed__reader_free(&reader);
    HOLDS(in_use == 0);
}

/* The bytes as they are. */
static void read_them(const uint8_t *data, size_t n)
{
    n -= 3;
    read_stream(data + 3, n < 4096 ? n : 4096, data[0] & 1 ? 0x7fe : 0x76c, data[1] + 1u, data[2] + 1u);
}

/* Answers of the lengths that the bytes say: large ones too, which are read in place. */
static void read_answers(const uint8_t *data, size_t n)
{
    static uint8_t stream[1 << 18];
    size_t all = 0;

    for (size_t i = 3; i + 2 <= n && all + 12 + LARGEST < sizeof stream; i += 2) {
        uint32_t size = (uint32_t)(data[i] << 8 | data[i + 1]) % LARGEST;
        framed__put_head(stream + all, FRAMED_ANSWER, (uint32_t)i, size);
        for (uint32_t k = 0; k < size; k++)
            stream[all + 12 + k] = (uint8_t)(k * i);
        all += 12 + size;
    }
    read_stream(stream, all, 0x7fe, data[1] * 61u + 1, data[2] * 97u + 1);
}

/* ---- the writer ---- */

static struct {
    struct framed_out *line[64]; /* what has not begun, as far as is known */
    size_t n_line, n_wire;
    uint8_t wire[1 << 16];
    uint32_t begun;
} out;

static void on_begun(void *data, void *owner, uint32_t id)
{
    (void)data;
    HOLDS(id == ++out.begun);
    HOLDS(owner == &out);
}

static void let_go(struct framed_writer *writer, size_t n)
{
    struct iovec parts[5];
    size_t gone = 0;
    int n_parts = framed__gather(writer, parts, 5);

    for (int i = 0; i < n_parts && gone < n; i++) {
        size_t some = parts[i].iov_len < n - gone ? parts[i].iov_len : n - gone;
        if (out.n_wire + some > sizeof out.wire)
            break;
        memcpy(out.wire + out.n_wire, parts[i].iov_base, some);
        out.n_wire += some;
        gone += some;
    }
    framed__took(writer, gone, on_begun, NULL);
}

static void write_at_once(struct framed_writer *writer, struct framed_message *message, size_t taken)
{
    unsigned char head[FRAMED_HEAD];
    struct iovec parts[2];
    int n = framed__direct(writer, message, head, parts);
    size_t all = FRAMED_HEAD + message->n, gone = 0;

    taken = taken % all + 1;
    for (int i = 0; i < n; i++) {
        size_t some = parts[i].iov_len < taken - gone ? parts[i].iov_len : taken - gone;
        memcpy(out.wire + out.n_wire, parts[i].iov_base, some);
        out.n_wire += some;
        gone += some;
    }
    HOLDS(gone == taken);
    HOLDS(framed__sent(writer, message, head, taken) == 0);
    out.begun += message->type == FRAMED_REQUEST;
}

static struct framed_out *some_unbegun(struct framed_writer *writer, unsigned nth)
{
    struct framed_out *at = writer->first;

    while (at && (at->begun || nth--))
        at = at->next;
    return at;
}

static void obey(struct framed_writer *writer, uint8_t order, uint8_t much)
{
    static const uint8_t types[] = {FRAMED_REQUEST, FRAMED_PONG, FRAMED_CANCEL, FRAMED_REQUEST};
    static const uint8_t filler[256];
    struct framed_message message = {.type = types[order >> 4 & 3], .id = 1, .payload = filler, .n = much};
    struct framed_out *back;

    if (message.type == FRAMED_REQUEST)
        message.owner = &out;
    if (message.type != FRAMED_REQUEST)
        message.n = message.type == FRAMED_PONG ? 8 : 0;
    if (message.type == FRAMED_PONG)
        message.id = 0;
    switch (order % 5) {
    case 0:
        HOLDS(framed__put(writer, &message) != NULL);
        break;
    case 1:
        let_go(writer, much);
        break;
    case 2:
        if (!writer->first && out.n_wire + 300 < sizeof out.wire)
            write_at_once(writer, &message, order >> 3);
        break;
    case 3:
        if ((back = some_unbegun(writer, much % 4)))
            framed__take_back(writer, back);
        break;
    default:
        framed__drop_unbegun(writer);
    }
}

/* What went is frames, whole, and requests are numbered 1, 2, 3. */
static void check_wire(uint32_t last)
{
    uint32_t id = 0;
    size_t at = 0;

    while (at < out.n_wire) {
        HOLDS(out.n_wire - at >= 12);
        HOLDS(may_stand(out.wire + at, 0x7fe));
        if (out.wire[at + 4] == FRAMED_REQUEST)
            HOLDS(framed__get32(out.wire + at + 8) == ++id);
        at += 12 + framed__get32(out.wire + at);
    }
    HOLDS(at == out.n_wire);
    HOLDS(id == last);
}

static void write_them(const uint8_t *data, size_t n)
{
    struct link_blocks blocks = {0};
    struct framed_writer writer = {.env = &env, .blocks = &blocks};
    size_t waiting = 0;

    memset(&out, 0, sizeof out);
    for (size_t i = 1; i + 1 < n && i < 300; i += 2)
        obey(&writer, data[i], data[i + 1]);
    for (struct framed_out *at = writer.first; at; at = at->next) {
        HOLDS(!at->begun || at == writer.first);
        waiting += at->size - at->gone;
    }
    HOLDS(waiting == writer.waiting);
    HOLDS(writer.last_id == out.begun);
    for (size_t before = out.n_wire + 1; writer.first && out.n_wire != before;) {
        before = out.n_wire;
        let_go(&writer, 1000);
    }
    if (!writer.first)
        check_wire(writer.last_id);
    framed__writer_free(&writer);
    link__blocks_free(&blocks, &env);
    HOLDS(in_use == 0);
}

/* ---- the life of a link ---- */

enum {
    CALLERS = 24
};

static struct {
    struct testing *t;
    struct testing_peer *peer;
    struct pool *pool;
    struct caller {
        struct pool_lease lease;
        bool busy, asked;
        uint8_t asks;
    } callers[CALLERS];
} life;

static void on_done(struct pool_lease *lease)
{
    struct caller *caller = lease->data;

    caller->busy = lease->status == POOL_READY;
}

static void on_closed(struct pool_lease *lease)
{
    struct caller *caller = lease->data;

    HOLDS(caller->busy);
    caller->busy = caller->asked = false;
}

/* Answered: it asks again, or is done, as its orders say. */
static void go_on(struct caller *caller)
{
    if (caller->asks & 1) {
        caller->asks >>= 1;
        caller->asked = !channel_send(caller->lease.channel, &caller->asks, 1);
    } else if (caller->asks & 2) {
        caller->busy = false;
        pool_release(&caller->lease, POOL_REUSE);
    }
}

static void hear(struct channel *channel, const void *bytes, size_t n)
{
    struct caller *caller = channel_lease(channel)->data;

    HOLDS(caller->busy && caller->asked); /* an answer is told to who has asked, and once */
    caller->asked = false;
    sum_of(bytes, n); /* all of it can be read */
    go_on(caller);
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    HOLDS(code != 0);
    hear(channel, words, n);
}

/* An answer in pieces: all of them to who has asked, and the last one ends it. */
static void on_part(struct channel *channel, const void *bytes, size_t n, bool last)
{
    struct caller *caller = channel_lease(channel)->data;

    HOLDS(caller->busy && caller->asked);
    HOLDS(n || last);
    sum_of(bytes, n);
    if (last) {
        caller->asked = false;
        go_on(caller);
    } else if (caller->asks & 4) {
        caller->busy = caller->asked = false;
        pool_release(&caller->lease, caller->asks & 8 ? POOL_DISCARD : POOL_REUSE);
    }
}

static const struct channel_events hears = {.message = hear, .error = on_error},
                                   takes_parts = {.message = hear, .error = on_error, .part = on_part};

static void acquire(struct caller *caller)
{
    if (caller->busy || caller->lease.channel)
        return;
    pool_cancel(&caller->lease);
    caller->lease = (struct pool_lease){.done = on_done, .closed = on_closed, .data = caller, .timeout = 50};
    caller->busy = pool_acquire(life.pool, "10.0.0.1:80", &caller->lease) == POOL_READY;
}

static void send_some(struct caller *caller, uint8_t much)
{
    static const uint8_t filler[256 * 40];

    if (!caller->busy)
        return;
    channel_watch(caller->lease.channel, (caller - life.callers) % 2 ? &takes_parts : &hears, 0);
    int error = channel_send(caller->lease.channel, filler, much * 40u);
    HOLDS(!caller->asked || error == LINKPOOL_ESTATE || error == LINKPOOL_ELOST);
    caller->asked |= !error;
    caller->asks = much;
}

static void give_back(struct caller *caller, enum pool_disposition how)
{
    if (!caller->busy)
        return;
    caller->busy = caller->asked = false;
    pool_release(&caller->lease, how);
}

/* A frame that is right in most of its parts. */
static void say_frame(uint8_t type, uint8_t id, uint8_t much)
{
    static const uint8_t lengths[] = {0, 8, 12, 4, 0, 0, 4, 0, 8, 8, 8};
    static uint8_t frame[12 + 12 + 256 * 200];
    size_t n = type < 11 ? lengths[type] : 0;

    if (type == 5)
        n += (much & 1 ? 200u : 1u) * much;
    if (type == 6 || type == 10)
        n += much;
    framed__put_head(frame, type, type >= 4 && type <= 7 ? id : 0, n);
    memset(frame + 12, 0, 12);
    if (type == 2)
        memcpy(frame + 12, "\0\0\0\1\0\1\0\0\0\0\0\40", 12);
    else if (type == 9)
        frame[19] = id;
    else
        framed__put32(frame + 12, id);
    testing_peer_say(life.peer, frame, 12 + n);
}

/* As the heartbeat would. */
static void ping_all(void)
{
    struct pool_host *host = NULL;

    while ((host = pool_next_host(life.pool, host)))
        for (const struct link *link = NULL; (link = pool_host_next_link(host, link));)
            if (link_state(link) == LINK_READY) {
                protocol_framed.ping(&((struct link *)(uintptr_t)link)->protocol);
                break; /* that may have ended it */
            }
}

static void live(const uint8_t *at)
{
    struct caller *caller = &life.callers[at[0] / 16 % CALLERS];

    switch (at[0] % 11) {
    case 0:
        acquire(caller);
        break;
    case 1:
        send_some(caller, at[1]);
        break;
    case 2:
        give_back(caller, at[1] & 1 ? POOL_REUSE : POOL_DISCARD);
        break;
    case 3:
        testing_peer_window(life.peer, at[1] & 1 ? SIZE_MAX : at[1] * 8u);
        break;
    case 4:
        testing_peer_say(life.peer, at + 1, 2);
        break;
    case 5:
        testing_run_for(life.t, at[1] / 10.0);
        break;
    case 6:
        testing_fail_allocation(life.t, at[1], false);
        break;
    case 7:
        testing_peer_cut(life.peer, at[1] & 1 ? LINK_RESET : LINK_CLOSED_BY_PEER);
        break;
    case 8:
        ping_all();
        break;
    case 9:
        for (int i = 0; i < CALLERS; i++)
            send_some(&life.callers[i], at[1]);
        break;
    default:
        say_frame(at[1] % 12, at[1] / 12, at[2]);
    }
    testing_run_for(life.t, at[2] & 2 ? 0.001 : 0.1);
}

static void begin_life(const struct protocol *protocol, bool greets)
{
    struct pool_host_options host;
    struct pool_options options;

    memset(&life, 0, sizeof life);
    life.t = testing_new(1);
    life.peer = testing_peer_add(life.t, "10.0.0.1:80", TESTING_ACCEPT);
    if (greets)
        testing_peer_greet(life.peer, "\0\0\0\14\2\0\0\0\0\0\0\0\0\0\0\1\0\1\0\0\0\0\0\40", 24);
    testing_send_buffer(life.t, 3000);
    pool_host_options_init(&host);
    host.protocol = protocol;
    host.max_links = 2;
    pool_options_init(&options);
    options.host = &host;
    options.env = testing_env(life.t);
    life.pool = pool_new_on(testing_driver(life.t), &options);
}

static void live_it(const uint8_t *data, size_t n)
{
    struct framed_options options;
    struct protocol protocol;

    framed_options_init(&options);
    options.max_queue = 4096;
    options.max_channel_queue = 1024;
    protocol = framed_protocol(&options);
    begin_life(&protocol, data[0] & 1);
    for (int i = 0; i < CALLERS; i++)
        acquire(&life.callers[i]);
    testing_run_for(life.t, 0.001);
    for (size_t i = 1; i + 3 <= n && i < 300; i += 3)
        live(data + i);
    testing_fail_allocation(life.t, 0, false);
    testing_run_for(life.t, 1);
    pool_free(life.pool);
    testing_run_for(life.t, 0.1);
    HOLDS(testing_blocks(life.t) == 0);
    HOLDS(testing_open_descriptors(life.t) == 0);
    HOLDS(testing_misuses(life.t) == 0);
    HOLDS(!testing_stuck(life.t));
    testing_free(life.t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 4)
        return 0;
    switch (data[0] >> 1 & 3) {
    case 0:
        read_them(data, n);
        break;
    case 1:
        write_them(data, n);
        break;
    case 2:
        live_it(data, n);
        break;
    default:
        read_answers(data, n);
    }
    return 0;
}
