/* client.c - the storm's clients: so many connections ask a proxy, check every byte that comes back and write down what
 * became of each request.
 *
 *     storm_client --to ADDR --requests N --seed S --log FILE [--clients N]
 *
 * Its log has a line a request: BEGIN END ID METHOD SIZE CLIENT RESULT HOW STATUS BACKEND PLAN BYTES TEXT, a dash
 * for what there is not. Times are wall time; BACKEND and PLAN come from the backend's answer, TEXT is the body of the
 * proxy's own, or what is wrong. RESULT and HOW:
 *     ok     length|close  the asker's answer, whole
 *     short  length|close  the asker's answer, whole as it was framed, but not all of it
 *     own    length|close  the proxy's own answer
 *     cut    end|reset     its head had come, then the connection's end
 *     gone   end|reset     no answer, but the connection's end
 *     left   waiting|sending|receiving|reset  the client left by itself
 *     late   -             nothing happened for very long
 *     wrong  -             what came is not the asker's */
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "tests/proxy/storm/ask.h"
#include "tests/proxy/storm/heard.h"
#include "tests/proxy/storm/plan.h"

#define LATE     20.  /* seconds: the proxy's times, all in all, are far below */
#define CONTINUE 0.1  /* so long an expected 100 is waited for */
#define LAZY     0.03 /* so long a lazy one does not read */
#define PAUSE    0.02 /* after a failure */
#define AWAY     0.2  /* after a 503: less than its Retry-After, which is in whole seconds */

struct slot {
    struct storm *storm;
    unsigned number;
    struct ev_io io; /* its fd is -1: no connection */
    ev_timer late, leave, pause;
    struct wish wish;
    struct heard heard;
    bool asking; /* a request is under way */
    bool over;   /* the answer has come, and the connection is to end */
    bool lazy, held, deaf;
    double began;
    struct ask ask;
};

struct storm {
    const char *to;
    unsigned clients;
    uint64_t requests, next, done;
    FILE *log;
    struct socket_address address;
    struct ev_loop *loop;
    struct slot *slots;
    unsigned busy; /* slots that are not done */
};

static void begin_next(struct slot *slot);

/* ---- what became of it ---- */

static const char *or_dash(const char *text)
{
    return text[0] == '\0' ? "-" : text;
}

static void write_down(struct slot *slot, const char *result, const char *how)
{
    const struct heard *heard = &slot->heard;
    const char *text = heard->wrong != NULL ? heard->wrong : heard->text;

    fprintf(slot->storm->log, "%.6f %.6f %" PRIu64 " %s %zu %u %s %s %u %s %s %" PRIu64 " %s\n", slot->began,
        plan_now(), slot->wish.id, plan_method_name(slot->wish.method), slot->wish.body, slot->number, result, how,
        heard->status, or_dash(heard->field[HEARD_BACKEND]), or_dash(heard->field[HEARD_PLAN]), heard->bytes,
        or_dash(text));
    slot->asking = false;
    slot->storm->done++;
    ev_timer_stop(slot->storm->loop, &slot->late);
    ev_timer_stop(slot->storm->loop, &slot->leave);
    ev_timer_stop(slot->storm->loop, &slot->pause);
}

/* ---- the connection ---- */

static void want(struct slot *slot)
{
    bool sends = (slot->asking || slot->over) && !slot->held && !slot->deaf && slot->ask.sent < slot->ask.n;

    loop_want(slot->storm->loop, &slot->io, (slot->lazy ? 0 : EV_READ) | (sends ? EV_WRITE : 0));
}

static void hang_up(struct slot *slot, bool by_reset)
{
    if (slot->io.fd < 0)
        return;
    ev_io_stop(slot->storm->loop, &slot->io);
    if (by_reset)
        socket_reset(slot->io.fd);
    else
        close(slot->io.fd);
    ev_io_set(&slot->io, -1, EV_READ);
    slot->over = false;
}

static void start_timer(struct slot *slot, ev_timer *timer, double seconds)
{
    ev_timer_stop(slot->storm->loop, timer);
    ev_timer_set(timer, seconds, 0);
    ev_timer_start(slot->storm->loop, timer);
}

static void leave(struct slot *slot, const char *how, bool by_reset)
{
    write_down(slot, "left", how);
    hang_up(slot, by_reset);
    begin_next(slot);
}

/* ---- a request ---- */

static void connect_slot(struct slot *slot)
{
    int fd = socket_connect(&slot->storm->address);

    if (fd < 0)
        die("%s: %s", slot->storm->to, strerror(errno));
    ev_io_set(&slot->io, fd, EV_READ | EV_WRITE);
    ev_io_start(slot->storm->loop, &slot->io);
}

static void begin_next(struct slot *slot)
{
    struct storm *storm = slot->storm;

    if (storm->next == storm->requests) {
        hang_up(slot, false);
        if (--storm->busy == 0)
            ev_break(storm->loop, EVBREAK_ALL);
        return;
    }
    plan_wish(++storm->next, &slot->wish);
    ask_compose(&slot->ask, &slot->wish);
    heard_begin(&slot->heard, &slot->wish, slot->ask.digest);
    slot->asking = true;
    slot->held = slot->deaf = slot->lazy = false;
    slot->began = plan_now();
    start_timer(slot, &slot->late, LATE);
    if (slot->io.fd < 0)
        connect_slot(slot);
    want(slot);
}

/* ---- sending ---- */

static size_t send_until(const struct slot *slot)
{
    return slot->over ? slot->ask.n : ask_until(&slot->ask, slot->heard.may_continue);
}

/* What is to be sent for now is out. Returns false when the connection is gone. */
static bool on_sent(struct slot *slot)
{
    if (slot->over) {
        want(slot);
        return true;
    }
    if (slot->ask.sent == slot->ask.n) {
        if (slot->wish.leaving == LEAVE_WAITING)
            start_timer(slot, &slot->leave, slot->wish.leave_after);
    } else if (slot->wish.expect && !slot->heard.may_continue) { /* a 100 is waited for, but not for ever */
        slot->held = true;
        start_timer(slot, &slot->pause, CONTINUE);
    } else {
        leave(slot, "sending", false);
        return false;
    }
    want(slot);
    return true;
}

/* Returns false when the connection is gone. */
static bool send_more(struct slot *slot)
{
    ssize_t n = ask_send(&slot->ask, slot->io.fd, send_until(slot));

    if (n < 0 && errno == EAGAIN)
        return true;
    if (n < 0) { /* an answer may yet be there to be read */
        slot->deaf = true;
        want(slot);
        return true;
    }
    return slot->ask.sent < send_until(slot) || on_sent(slot);
}

static void go_on_sending(struct slot *slot)
{
    slot->held = false;
    slot->heard.may_continue = true;
    want(slot);
}

/* ---- reading ---- */

/* A request is over: on with the next, at once or after a pause. */
static void go_on(struct slot *slot, bool failed)
{
    if (failed)
        start_timer(slot, &slot->pause, slot->heard.status == 503 ? AWAY : PAUSE);
    else
        begin_next(slot);
}

static void on_wrong(struct slot *slot)
{
    write_down(slot, "wrong", "-");
    hang_up(slot, false);
    go_on(slot, true);
}

/* What an answer must say of the connection. */
static const char *what_is_wrong(const struct slot *slot)
{
    if (slot->heard.keep_alive && slot->ask.sent < slot->ask.n)
        return "keep-alive,_and_the_request_was_not_whole";
    if (slot->heard.keep_alive && slot->wish.close)
        return "keep-alive,_and_close_was_asked_for";
    return NULL;
}

/* The answer is whole. A connection that is to end is left at once, or seen to its end: nothing may come of it. */
static void on_answer(struct slot *slot)
{
    struct heard *heard = &slot->heard;
    bool own = heard->field[HEARD_BACKEND][0] == '\0';

    heard->wrong = what_is_wrong(slot);
    if (heard->wrong != NULL) {
        on_wrong(slot);
        return;
    }
    write_down(slot, own ? "own" : heard->shorter ? "short" : "ok", heard->by_end ? "close" : "length");
    if (!heard->keep_alive && !heard->by_end && slot->wish.goes_on) {
        slot->over = true;
        slot->held = slot->lazy = false;
        start_timer(slot, &slot->late, LATE);
        want(slot);
        return;
    }
    if (!heard->keep_alive)
        hang_up(slot, false);
    go_on(slot, own);
}

static void on_end(struct slot *slot, bool by_reset)
{
    if (!slot->asking) { /* as it was to be, or idle */
        bool was_over = slot->over;

        ev_timer_stop(slot->storm->loop, &slot->late);
        hang_up(slot, false);
        if (was_over)
            go_on(slot, slot->heard.field[HEARD_BACKEND][0] == '\0');
        return;
    }
    if (!by_reset && heard_end(&slot->heard) == HEARD_WHOLE) {
        on_answer(slot);
        return;
    }
    write_down(slot, slot->heard.status != 0 ? "cut" : "gone", by_reset ? "reset" : "end");
    hang_up(slot, false);
    go_on(slot, true);
}

/* The head of an answer has come, and more is to come. */
static void on_part(struct slot *slot)
{
    bool resets = slot->wish.leaving == LEAVE_BY_RESET;

    ev_timer_stop(slot->storm->loop, &slot->leave);
    if (resets || slot->wish.leaving == LEAVE_RECEIVING) {
        leave(slot, resets ? "reset" : "receiving", resets);
    } else if (slot->wish.lazy) {
        slot->wish.lazy = false;
        slot->lazy = true;
        start_timer(slot, &slot->pause, LAZY);
        want(slot);
    }
}

static void take(struct slot *slot, const char *bytes, size_t n)
{
    bool could_continue = slot->heard.may_continue;
    enum heard_step step;

    if (!slot->asking) {
        slot->heard.wrong = "bytes_that_nobody_has_asked_for";
        slot->storm->done--; /* the request's second line */
        on_wrong(slot);
        return;
    }
    step = heard_take(&slot->heard, bytes, n);
    if (step == HEARD_WRONG)
        on_wrong(slot);
    else if (step == HEARD_WHOLE)
        on_answer(slot);
    else if (slot->heard.status != 0)
        on_part(slot);
    else if (slot->heard.may_continue && !could_continue && slot->held)
        go_on_sending(slot);
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct slot *slot = io->data;
    static char bytes[65536];
    ssize_t n;

    (void)loop;
    if ((events & EV_WRITE) != 0 && !send_more(slot))
        return;
    if ((events & EV_READ) == 0)
        return;
    n = recv(slot->io.fd, bytes, sizeof bytes, 0);
    if (n > 0)
        take(slot, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        on_end(slot, n < 0);
}

/* ---- timers ---- */

static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct slot *slot = timer->data;

    (void)loop, (void)events;
    if (!slot->asking) {
        slot->heard.wrong = "not_closed,_as_it_was_to_be";
        slot->storm->done--;
    }
    write_down(slot, "late", "-");
    hang_up(slot, false);
    begin_next(slot);
}

static void on_leave(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    leave(timer->data, "waiting", false);
}

/* One timer for what cannot be at once: a 100 to come, a lazy reader, the time after a failure. */
static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct slot *slot = timer->data;

    (void)loop, (void)events;
    if (!slot->asking) {
        begin_next(slot);
        return;
    }
    slot->lazy = false;
    if (slot->held)
        go_on_sending(slot);
    want(slot);
}

/* ---- the program ---- */

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"requests", required_argument, NULL, 'r'},
    {"clients", required_argument, NULL, 'c'},
    {"seed", required_argument, NULL, 's'},
    {"log", required_argument, NULL, 'l'},
    {0},
};

static void take_options(struct storm *storm, int argc, char **argv)
{
    const char *why;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 't': storm->to = optarg; break;
        case 'r': storm->requests = option_count("--requests", optarg, 1, 100000000); break;
        case 'c': storm->clients = option_count("--clients", optarg, 1, 10000); break;
        case 's': plan_begin(option_count("--seed", optarg, 0, UINT32_MAX)); break;
        case 'l': storm->log = fopen(optarg, "we"); break;
        default: exit(2);
        }
    /* clang-format on */
    if (storm->to == NULL || storm->log == NULL || storm->requests == 0)
        die_usage("--to ADDR --requests N --seed S --log FILE [--clients N]");
    if (socket_parse(storm->to, &storm->address, &why) < 0)
        die_usage("--to: '%s': %s", storm->to, why);
}

static void start_slot(struct storm *storm, unsigned number)
{
    struct slot *slot = &storm->slots[number];

    slot->storm = storm;
    slot->number = number;
    ask_init(&slot->ask);
    ev_io_init(&slot->io, on_ready, -1, EV_READ);
    ev_init(&slot->late, on_late);
    ev_init(&slot->leave, on_leave);
    ev_init(&slot->pause, on_pause);
    slot->io.data = slot->late.data = slot->leave.data = slot->pause.data = slot;
    begin_next(slot);
}

int main(int argc, char **argv)
{
    static struct storm storm = {.clients = 200};
    struct loop_end end;
    double began = plan_now();

    program_name = argv[0] = "storm_client";
    take_options(&storm, argc, argv);
    storm.loop = ev_default_loop(0);
    storm.slots = calloc(storm.clients, sizeof *storm.slots);
    if (storm.loop == NULL || storm.slots == NULL)
        die("out of memory");
    loop_end_on_signals(storm.loop, &end);
    storm.busy = storm.clients;
    for (unsigned i = 0; i < storm.clients; i++)
        start_slot(&storm, i);
    if (storm.busy > 0)
        ev_run(storm.loop, 0);
    if (fclose(storm.log) != 0)
        die("--log: %s", strerror(errno));
    for (unsigned i = 0; i < storm.clients; i++)
        ask_free(&storm.slots[i].ask);
    free(storm.slots);
    ev_loop_destroy(storm.loop);
    printf("%" PRIu64 " requests in %.1f s\n", storm.done, plan_now() - began);
    return storm.done == storm.requests ? 0 : 1;
}
