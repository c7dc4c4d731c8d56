/* adders.c - callers that add 1 by call id over pooled links while their server is killed: adders ADDR LEDGER [FAULT]
 *
 * 64 callers, each with one call at a time and each call with an id of its own (add_server.c). Three of four wait while
 * the server is down, and never ask twice: one whose request was not sent gives its id up. The fourth fails fast,
 * pauses 20 ms, and asks again with the same id while it was not sent, 25 times at most. Every eighth has the library
 * try again.
 *
 * What each id was told is in the LEDGER (ledger.h). It is told exactly once: a second time ends the program. Prints
 * "answered N" and "failed N" as these grow, and "resumed NUMBER TIME" at the first answer of another process. At the
 * end of its standard input it starts nothing more, awaits what is under way, and prints what became of it.
 *
 * FAULT: "lies" writes of each thousandth answer that it was not sent, "forgets" writes nothing of it. */
#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "linkpool/linkpool.h"
#include "tests/framed/ledger.h"

enum {
    CALLERS = 64,
    STEP = 50, /* answers from one line to the next */
    MOST_TIMES = 25
};

struct caller {
    struct pool_call call;
    ev_timer pause;
    uint64_t id;
    unsigned char request[11];
    unsigned times; /* that it has asked with this id */
    bool is_quick;  /* it does not wait while the server is down */
    bool is_out;
};

static struct {
    struct ev_loop *loop;
    struct pool *pool;
    const char *address, *fault;
    unsigned char *ledger;
    struct caller callers[CALLERS];
    ev_io input;
    uint64_t ids, started, told, answered, failed, maybe, not_sent, asked_again;
    uint64_t server; /* the NUMBER of the last answer */
    unsigned busy;
    bool over;
} adders;

static void die(const char *why)
{
    fprintf(stderr, "adders: %s\n", why);
    exit(1);
}

/* ---- what is told ---- */

static void settle(struct caller *caller, enum ledger_told what)
{
    unsigned char *at = &adders.ledger[caller->id];

    if (*at != 0)
        die("an id is told twice");
    *at = (unsigned char)what;
    adders.told++;
    if (what == LEDGER_ANSWERED && caller->id % 1000 == 500 && strcmp(adders.fault, "lies") == 0)
        *at = LEDGER_NOT_SENT;
    if (caller->id % 1000 == 500 && strcmp(adders.fault, "forgets") == 0)
        *at = 0;
}

static void note_answer(const unsigned char *number)
{
    uint64_t server = 0;
    struct timespec now;

    for (int i = 0; i < 8; i++)
        server = server << 8 | number[i];
    if (server != adders.server) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("resumed %llu %.6f\n", (unsigned long long)server, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    }
    adders.server = server;
    if (++adders.answered % STEP == 0)
        printf("answered %llu\n", (unsigned long long)adders.answered);
    fflush(stdout);
}

/* ---- the callers ---- */

static void ask(struct caller *caller);

static void next(struct caller *caller)
{
    if (adders.over) {
        if (--adders.busy == 0)
            ev_break(adders.loop, EVBREAK_ALL);
        return;
    }
    if (adders.ids == LEDGER_IDS)
        die("all ids are used up");
    caller->id = adders.ids++;
    caller->times = 0;
    memcpy(caller->request, "add", 3);
    for (unsigned i = 0; i < 8; i++)
        caller->request[3 + i] = (unsigned char)(caller->id >> (56 - 8 * i));
    adders.started++;
    ask(caller);
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct caller *caller = timer->data;

    (void)loop, (void)events;
    if (!adders.over) {
        adders.asked_again++;
        ask(caller);
        return;
    }
    adders.not_sent++;
    settle(caller, LEDGER_NOT_SENT);
    next(caller);
}

/* Not answered. Where it certainly was not sent, the quick ask again, with the same id, for half a second. */
static void fail(struct caller *caller)
{
    if (++adders.failed % (STEP / 5) == 0) {
        printf("failed %llu\n", (unsigned long long)adders.failed);
        fflush(stdout);
    }
    if (caller->is_quick && caller->call.fate == POOL_NOT_SENT && ++caller->times < MOST_TIMES) {
        ev_timer_set(&caller->pause, 0.02, 0);
        ev_timer_start(adders.loop, &caller->pause);
        return;
    }
    if (caller->call.fate == POOL_NOT_SENT)
        adders.not_sent++;
    else
        adders.maybe++;
    settle(caller, caller->call.fate == POOL_NOT_SENT ? LEDGER_NOT_SENT : LEDGER_MAYBE);
    next(caller);
}

static void on_done(struct pool_call *call)
{
    struct caller *caller = call->data;

    if (!caller->is_out)
        die("a call is told twice");
    caller->is_out = false;
    if (call->status != 0) {
        fail(caller);
        return;
    }
    if (call->answer_size != 8)
        die("an answer that is no number");
    note_answer(call->answer);
    settle(caller, LEDGER_ANSWERED);
    next(caller);
}

static void ask(struct caller *caller)
{
    caller->is_out = true;
    caller->call.to = adders.address;
    caller->call.request = caller->request;
    caller->call.request_size = sizeof caller->request;
    caller->call.done = on_done;
    caller->call.data = caller;
    caller->call.timeout = 10;
    if (pool_call(adders.pool, &caller->call) == POOL_PENDING)
        return;
    caller->is_out = false;
    if (caller->call.fate != POOL_NOT_SENT)
        die("refused at once, and yet sent");
    if (!caller->is_quick)
        die(linkpool_strerror(caller->call.status));
    fail(caller);
}

/* ---- the program ---- */

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
    char bytes[64];

    (void)events;
    if (read(io->fd, bytes, sizeof bytes) > 0)
        return;
    ev_io_stop(loop, io);
    adders.over = true;
}

static void open_pool(void)
{
    static struct protocol protocol;
    struct pool_host_options host;
    struct pool_options options;

    protocol = framed_protocol(NULL);
    pool_host_options_init(&host);
    host.protocol = &protocol;
    pool_options_init(&options);
    options.host = &host;
    adders.loop = EV_DEFAULT;
    if ((adders.pool = pool_new(adders.loop, &options)) == NULL)
        die("no pool");
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return fputs("usage: adders ADDR LEDGER [FAULT]\n", stderr), 2;
    adders.address = argv[1];
    adders.ledger = ledger_open(argv[2]);
    adders.fault = argc == 4 ? argv[3] : "";
    open_pool();
    ev_io_init(&adders.input, on_input, 0, EV_READ);
    ev_io_start(adders.loop, &adders.input);
    for (unsigned i = 0; i < CALLERS; i++) {
        struct caller *caller = &adders.callers[i];
        caller->is_quick = i % 4 == 3;
        caller->call.flags = caller->is_quick ? 0 : POOL_CALL_WAIT_FOR_READY;
        caller->call.retries = i % 8 == 0 ? 2 : 0;
        ev_timer_init(&caller->pause, on_pause_over, 0, 0);
        caller->pause.data = caller;
        adders.busy++;
        next(caller);
    }
    ev_run(adders.loop, 0);
    pool_free(adders.pool);
    printf("started %llu told %llu answered %llu maybe %llu not_sent %llu asked_again %llu failed %llu\n",
        (unsigned long long)adders.started, (unsigned long long)adders.told, (unsigned long long)adders.answered,
        (unsigned long long)adders.maybe, (unsigned long long)adders.not_sent, (unsigned long long)adders.asked_again,
        (unsigned long long)adders.failed);
    return 0;
}
