/* status.c - the pages by HTTP, of workers that a test plays: real sockets, on the control thread's loop. */
#include "examples/lbproxy/status.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/figures/crew.h"

enum {
    DEADLINE = 20, /* seconds, for what comes at once */
    MANY = 32      /* connections that are served together */
};

/* Who looks: what it has been told, and whether the other side has closed. */
struct viewer {
    struct ev_io io;
    char text[65536];
    size_t n;
    bool closed;
};

static struct status *status;
static struct sockaddr_in address;
static struct viewer viewers[MANY + 1];

static void set_up(void)
{
    socklen_t n = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(zero(int, bind(fd, (struct sockaddr *)&address, n)));
    cr_assert(zero(int, listen(fd, SOMAXCONN)));
    cr_assert(zero(int, getsockname(fd, (struct sockaddr *)&address, &n)));
    crew_make();
    status = status_start(&crew, fd);
    cr_assert(ne(ptr, status, NULL));
}

static void clean_up(void)
{
    status_stop(status);
    crew_clear();
}

TestSuite(status, .init = set_up, .fini = clean_up, .timeout = 60);

/* ---- who looks ---- */

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    struct viewer *viewer = io->data;
    ssize_t got = recv(io->fd, viewer->text + viewer->n, sizeof viewer->text - 1 - viewer->n, MSG_DONTWAIT);

    (void)events;
    if (got > 0) {
        viewer->n += (size_t)got;
        return;
    }
    viewer->closed = true;
    ev_io_stop(loop, io);
    close(io->fd);
}

static struct viewer *look(unsigned i, const char *words)
{
    struct viewer *viewer = &viewers[i];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert(zero(int, connect(fd, (struct sockaddr *)&address, sizeof address)));
    cr_assert(eq(sz, (size_t)write(fd, words, strlen(words)), strlen(words)));
    ev_io_init(&viewer->io, on_readable, fd, EV_READ);
    viewer->io.data = viewer;
    ev_io_start(crew.loop, &viewer->io);
    return viewer;
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events;
    cr_fatal("what should happen does not");
}

/* Runs the loop until it is so, whatever `what` is. */
static void await(bool (*is_so)(const void *), const void *what)
{
    ev_timer deadline;

    ev_now_update(crew.loop);
    ev_timer_init(&deadline, on_deadline, DEADLINE, 0);
    ev_timer_start(crew.loop, &deadline);
    while (!is_so(what))
        ev_run(crew.loop, EVRUN_ONCE);
    ev_timer_stop(crew.loop, &deadline);
}

static bool is_closed(const void *viewer)
{
    return ((const struct viewer *)viewer)->closed;
}

static void expect_answer(const struct viewer *viewer, const char *line, const char *end)
{
    size_t n = strlen(end);

    cr_assert(zero(int, strncmp(viewer->text, line, strlen(line))), "%s", viewer->text);
    cr_assert(ge(sz, viewer->n, n));
    cr_assert(eq(str, (char *)viewer->text + viewer->n - n, (char *)end));
}

static void expect_answer_now(const char *words, const char *line, const char *end)
{
    struct viewer *viewer = look(0, words);

    await(is_closed, viewer);
    expect_answer(viewer, line, end);
}

/* ---- workers ---- */

static bool are_asked(const void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < CREW_THREADS; i++)
        if (!(atomic_load(&crew.workers[i]->orders) & WORKER_REPORT))
            return false;
    return true;
}

static void report(unsigned i)
{
    atomic_store(&crew.workers[i]->orders, 0);
    crew_report(i)->round++;
    status_on_report(status);
}

static void report_all(void)
{
    for (unsigned i = 0; i < CREW_THREADS; i++)
        report(i);
}

/* A page is asked for, all workers report, and it comes. */
static struct viewer *see(const char *words)
{
    struct viewer *viewer = look(0, words);

    await(are_asked, NULL);
    report_all();
    await(is_closed, viewer);
    return viewer;
}

static void turn_a_few_times(void)
{
    for (int i = 0; i < 20; i++)
        ev_run(crew.loop, EVRUN_NOWAIT);
}

/* ---- pages ---- */

Test(status, the_page_comes_by_http)
{
    struct viewer *viewer = see("GET / HTTP/1.1\r\nHost: x\r\n\r\n");

    expect_answer(viewer, "HTTP/1.1 200 ", "thread 1: no report\n");
    cr_assert(
        ne(ptr, strstr(viewer->text, "\r\nContent-Type: text/plain; charset=utf-8\r\n"), NULL), "%s", viewer->text);
    cr_assert(ne(ptr, strstr(viewer->text, "\r\n\r\nlbproxy "), NULL), "%s", viewer->text);
}

Test(status, a_query_changes_nothing)
{
    expect_answer(see("GET /?all HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 ", "thread 1: no report\n");
}

Test(status, metrics_say_their_format)
{
    struct viewer *viewer = see("GET /metrics HTTP/1.0\r\n\r\n");

    expect_answer(viewer, "HTTP/1.1 200 ", "lbproxy_answer_seconds_count{backend=\"10.0.0.2:80\"} 0\n");
    cr_assert(
        ne(ptr, strstr(viewer->text, "\r\nContent-Type: text/plain; version=0.0.4\r\n"), NULL), "%s", viewer->text);
}

Test(status, head_gets_a_head)
{
    struct viewer *viewer = see("HEAD /metrics HTTP/1.0\r\n\r\n");

    expect_answer(viewer, "HTTP/1.1 200 ", "\r\n\r\n");
    cr_assert(eq(ptr, strstr(viewer->text, "# HELP"), NULL));
    cr_assert(ne(ptr, strstr(viewer->text, "\r\nContent-Length: "), NULL));
}

Test(status, other_paths_are_not_there)
{
    expect_answer_now("GET /x HTTP/1.0\r\n\r\n", "HTTP/1.1 404 ", "\r\n\r\nthere are /, /metrics and /healthz\n");
    cr_assert_not(are_asked(NULL));
}

Test(status, other_methods_are_refused)
{
    expect_answer_now(
        "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 405 ", "\r\n\r\nGET and HEAD alone are answered\n");
    cr_assert(ne(ptr, strstr(viewers[0].text, "\r\nAllow: GET, HEAD\r\n"), NULL), "%s", viewers[0].text);
    cr_assert_not(are_asked(NULL));
}

Test(status, what_is_no_http_is_refused_and_nothing_is_printed)
{
    int said[2];
    char word;

    cr_assert(zero(int, pipe(said)));
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    dup2(said[1], STDERR_FILENO);
    await(is_closed, look(0, "what now?\r\n\r\n"));
    await(is_closed, look(1, "GET\r\n\r\n"));
    cr_assert(eq(int, (int)read(said[0], &word, 1), -1));
}

/* ---- health ---- */

static void set_states(enum link_state first, enum link_state second)
{
    for (unsigned i = 0; i < CREW_THREADS; i++) {
        crew_report(i)->hosts[0].state = first;
        crew_report(i)->hosts[1].state = second;
    }
}

static const char health[] = "GET /healthz HTTP/1.0\r\n\r\n";
static const char ok[] = "HTTP/1.1 200 ", unavailable[] = "HTTP/1.1 503 ";

Test(status, health_is_good_while_a_backend_may_serve)
{
    static const enum link_state fine[] = {LINK_IDLE, LINK_CONNECTING, LINK_READY};

    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        set_states(LINK_BACKOFF, fine[i]);
        memset(viewers, 0, sizeof viewers);
        expect_answer(see(health), ok, "\r\n\r\nok\n");
    }
}

Test(status, health_is_bad_when_no_backend_may_serve)
{
    static const enum link_state down[] = {LINK_BACKOFF, LINK_OFFLINE, LINK_DRAINING};

    for (size_t i = 0; i < sizeof down / sizeof *down; i++) {
        set_states(LINK_BACKOFF, down[i]);
        memset(viewers, 0, sizeof viewers);
        expect_answer(see(health), unavailable, "\r\n\r\nno backend\n");
    }
}

Test(status, health_is_good_while_one_thread_finds_a_backend_up)
{
    for (unsigned i = 0; i < CREW_THREADS; i++) {
        set_states(LINK_BACKOFF, LINK_BACKOFF);
        crew_report(i)->hosts[1].state = LINK_READY;
        memset(viewers, 0, sizeof viewers);
        expect_answer(see(health), ok, "\r\n\r\nok\n");
    }
}

Test(status, health_is_bad_while_lbproxy_drains)
{
    crew.draining = true;
    expect_answer(see(health), unavailable, "\r\n\r\ndraining\n");
}

/* ---- rounds ---- */

Test(status, a_page_waits_for_the_last_report)
{
    struct viewer *viewer = look(0, health);

    await(are_asked, NULL);
    report(1);
    turn_a_few_times();
    cr_assert(zero(sz, viewer->n));
    report(0);
    await(is_closed, viewer);
    expect_answer(viewer, ok, "ok\n");
}

Test(status, who_comes_during_a_round_gets_the_next)
{
    struct viewer *first = look(0, health);
    struct viewer *second;

    await(are_asked, NULL);
    second = look(1, health);
    turn_a_few_times();
    report_all();
    await(is_closed, first);
    await(are_asked, NULL);
    cr_assert(zero(sz, second->n));
    report_all();
    await(is_closed, second);
    expect_answer(second, ok, "ok\n");
    turn_a_few_times();
    cr_assert_not(are_asked(NULL)); /* by nobody */
}

Test(status, a_thread_that_is_over_is_not_waited_for)
{
    struct viewer *viewer = look(0, health);

    await(are_asked, NULL);
    report(0);
    atomic_store(&crew.workers[1]->over, true);
    status_on_report(status);
    await(is_closed, viewer);
    expect_answer(viewer, ok, "ok\n");
}

Test(status, a_thread_that_does_not_answer_is_told_after_five_seconds_of_doing_nothing)
{
    struct viewer *viewer = look(0, "GET / HTTP/1.0\r\n\r\n");
    unsigned turns = ev_iteration(crew.loop);
    double begin = ev_now(crew.loop);

    await(are_asked, NULL);
    report(0);
    await(is_closed, viewer);
    expect_answer(viewer, unavailable, "\r\n\r\na thread does not answer\n");
    cr_assert(lt(dbl, 4.5, ev_now(crew.loop) - begin));
    cr_assert(lt(uint, ev_iteration(crew.loop) - turns, 60));

    /* at last it answers, and the next look is as any other */
    viewer = look(1, health);
    turn_a_few_times();
    report(1);
    await(are_asked, NULL);
    report_all();
    await(is_closed, viewer);
    expect_answer(viewer, ok, "ok\n");
}

/* ---- bounds ---- */

Test(status, thirty_two_are_served_at_once_and_the_next_when_one_has_gone)
{
    for (unsigned i = 0; i < MANY; i++)
        look(i, "GET / HTTP/1.0\r\n"); /* not whole */
    look(MANY, health);
    turn_a_few_times();
    cr_assert_not(are_asked(NULL));
    cr_assert(eq(int, (int)write(viewers[0].io.fd, "\r\n", 2), 2));
    await(are_asked, NULL);
    report_all();
    await(is_closed, &viewers[0]);
    await(are_asked, NULL);
    report_all();
    await(is_closed, &viewers[MANY]);
    expect_answer(&viewers[MANY], ok, "ok\n");
}

Test(status, who_says_nothing_is_closed)
{
    struct viewer *viewer = look(0, "");

    await(is_closed, viewer);
    cr_assert(zero(sz, viewer->n));
}

static struct rlimit all;

static void give_back(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events;
    setrlimit(RLIMIT_NOFILE, &all);
}

Test(status, out_of_descriptors_it_waits_and_does_not_spin)
{
    struct rlimit none = (getrlimit(RLIMIT_NOFILE, &all), all);
    struct viewer *viewer = look(0, health);
    unsigned turns = ev_iteration(crew.loop);
    ev_timer later;

    none.rlim_cur = 0;
    cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &none)));
    ev_timer_init(&later, give_back, 0.5, 0);
    ev_timer_start(crew.loop, &later);
    await(are_asked, NULL);
    cr_assert(lt(uint, ev_iteration(crew.loop) - turns, 60));
    report_all();
    await(is_closed, viewer);
    expect_answer(viewer, ok, "ok\n");
}

/* ---- going ---- */

Test(status, who_hangs_up_while_it_waits_costs_nothing)
{
    struct viewer *viewer = look(0, health);

    await(are_asked, NULL);
    ev_io_stop(crew.loop, &viewer->io);
    close(viewer->io.fd);
    turn_a_few_times();
    report_all();
    turn_a_few_times();
    expect_answer(see(health), ok, "ok\n");
}

Test(status, stopping_closes_all_that_wait)
{
    struct viewer *waiting = look(0, health);
    struct viewer *slow = look(1, "GET / HT");

    await(are_asked, NULL);
    status_stop(status);
    status = NULL;
    await(is_closed, waiting);
    await(is_closed, slow);
}
