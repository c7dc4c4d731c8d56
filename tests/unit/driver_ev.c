/* driver_ev.c - the libev driver on real loops, with socket pairs.
 *
 * No test sleeps: a poll that blocks where it must not hangs until the suite's time-out and fails. What happened is
 * told as a string, a letter a callback. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "linkpool/driver.h"

/* Each assertion of Criterion 2.4.1 puts an int into a bit field of one bit. */
#pragma GCC diagnostic ignored "-Wconversion"

enum {
    FAR = 1000, /* seconds: more than the suite's time-out */
    MANY = 100  /* peers: the driver's table grows a few times */
};

static struct ev_loop *loop;
static struct driver *driver;
static char story[64];

/** A watched end of a socket pair, and the other end. */
struct peer {
    struct driver_io io;
    int fd;
    int far_end;
    char letter;
    unsigned events;             /* what came last */
    void (*then)(struct peer *); /* last line of its callback: the peer may be gone */
    struct driver *driver;
};

/** The test's; also those of a test that failed are there when the driver is freed. */
static struct peer peers[MANY];
static size_t peer_count;

/** A user's own watcher: counted by the loop, never ready unless written to. */
static struct ev_io user;
static int user_ends[2];

static void tell(char letter)
{
    size_t n = strlen(story);

    cr_assert(lt(sz, n, sizeof story - 1));
    story[n] = letter;
}

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/** Works, as a user's slow callback does. */
static void be_busy(double seconds)
{
    for (double end = clock_now() + seconds; clock_now() < end;)
        ;
}

static void on_peer(struct driver_io *io, unsigned events)
{
    struct peer *peer = (struct peer *)io;

    tell(peer->letter);
    peer->events = events;
    if (peer->then)
        peer->then(peer);
}

/** Of the two peers of a test, the other one. */
static struct peer *other(struct peer *peer)
{
    return peer == &peers[0] ? &peers[1] : &peers[0];
}

static void connect_ends(struct peer *peer)
{
    int ends[2];

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0));
    peer->fd = ends[0];
    peer->far_end = ends[1];
}

static struct peer *make_peer(char letter)
{
    struct peer *peer = &peers[peer_count++];

    *peer = (struct peer){.io.on = on_peer, .letter = letter, .driver = driver};
    connect_ends(peer);
    return peer;
}

static void close_ends(struct peer *peer)
{
    close(peer->fd);
    close(peer->far_end);
    peer->fd = peer->far_end = -1;
}

static void watch(struct peer *peer, unsigned events)
{
    cr_assert(eq(int, peer->driver->ops->io_start(peer->driver, &peer->io, peer->fd, events), 0));
}

static void unwatch(struct peer *peer)
{
    peer->driver->ops->io_stop(peer->driver, &peer->io);
}

static void want(struct peer *peer, unsigned events)
{
    peer->driver->ops->io_events(peer->driver, &peer->io, events);
}

static void say(int fd)
{
    cr_assert(eq(long, write(fd, "x", 1), 1));
}

static void hear(int fd)
{
    char byte;

    cr_assert(eq(long, read(fd, &byte, 1), 1));
}

static void later(void)
{
    driver->ops->later(driver);
}

static void alarm_at(double due)
{
    driver->ops->alarm(driver, due);
}

static void tell_alarm(struct driver *d)
{
    (void)d;
    tell('A');
}

static void tell_later(struct driver *d)
{
    (void)d;
    tell('L');
}

static void tell_user(struct ev_loop *l, struct ev_io *watcher, int events)
{
    (void)l, (void)events;
    tell('u');
    hear(watcher->fd);
}

/** Makes a poll that has nothing to do block. */
static void start_user(int priority)
{
    ev_set_priority(&user, priority);
    ev_io_start(loop, &user);
}

static void set_up(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(ne(ptr, loop, NULL));
    driver = driver_ev_new(loop);
    cr_assert(ne(ptr, driver, NULL));
    driver->on_alarm = tell_alarm;
    driver->on_later = tell_later;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, user_ends), 0));
    ev_io_init(&user, tell_user, user_ends[0], EV_READ);
}

static void tear_down(void)
{
    driver_free(driver);
    ev_io_stop(loop, &user);
    ev_loop_destroy(loop);
    while (peer_count > 0)
        close_ends(&peers[--peer_count]);
    close(user_ends[0]);
    close(user_ends[1]);
}

TestSuite(driver_ev, .init = set_up, .fini = tear_down, .timeout = 20);

static void free_the_driver(void)
{
    driver_free(driver);
    driver = NULL;
}

/* What libev asks of the kernel. The program's own epoll_ctl() comes before the C library's, also for libev. */

static unsigned adds, mods, dels;
static int refusal; /* errno of the next call, if any */

__attribute__((visibility("default"))) int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    adds += op == EPOLL_CTL_ADD;
    mods += op == EPOLL_CTL_MOD;
    dels += op == EPOLL_CTL_DEL;
    if (refusal) {
        errno = refusal;
        refusal = 0;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

static void count_from_here(void)
{
    adds = mods = dels = 0;
}

/* Making and freeing. */

Test(driver_ev, is_not_made_without_a_loop)
{
    errno = 0;
    cr_assert(eq(ptr, driver_ev_new(NULL), NULL));
    cr_assert(eq(int, errno, EINVAL));
}

Test(driver_ev, freeing_none_does_nothing)
{
    driver_free(NULL);
}

Test(driver_ev, with_nothing_watched_the_loop_ends_by_itself)
{
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, ""));
}

Test(driver_ev, once_freed_the_loop_counts_as_before)
{
    free_the_driver();
    start_user(0);
    cr_assert(eq(int, ev_run(loop, EVRUN_NOWAIT), 1));
    ev_io_stop(loop, &user);
    cr_assert(eq(int, ev_run(loop, 0), 0));
}

/* Turns and the clock. */

Test(driver_ev, a_turn_is_a_poll)
{
    for (uint64_t i = 0; i < 5; i++) {
        cr_assert(eq(u64, driver->turn, i));
        ev_run(loop, EVRUN_NOWAIT);
    }
}

Test(driver_ev, the_clock_is_monotonic_and_taken_at_each_poll)
{
    for (int i = 0; i < 5; i++) {
        double before = clock_now();

        ev_run(loop, EVRUN_NOWAIT);
        cr_assert(ge(dbl, driver->now, before));
        cr_assert(le(dbl, driver->now, clock_now()));
    }
}

static void check_clock_of_this_turn(struct peer *peer)
{
    static double now;

    if (now == 0) {
        now = peer->driver->now;
        be_busy(0.002);
    }
    cr_assert(eq(dbl, peer->driver->now, now));
    unwatch(peer);
}

Test(driver_ev, the_clock_stands_still_within_a_turn)
{
    struct peer *a = make_peer('a');
    struct peer *b = make_peer('b');

    a->then = b->then = check_clock_of_this_turn;
    watch(a, LINKPOOL_WRITE);
    watch(b, LINKPOOL_WRITE);
    ev_run(loop, 0);
    cr_assert(eq(sz, strlen(story), 2));
    cr_assert(eq(u64, driver->turn, 1));
}

static double now_in_later;

static void note_clock(struct driver *d)
{
    now_in_later = d->now;
}

Test(driver_ev, later_asked_for_outside_the_loop_finds_the_clock_of_the_day)
{
    double busy_until, running_from;

    driver->on_later = note_clock;
    be_busy(0.002);
    busy_until = clock_now();
    later();
    cr_assert(ge(dbl, driver->now, busy_until));
    be_busy(0.002);
    running_from = clock_now();
    ev_run(loop, 0);
    cr_assert(ge(dbl, now_in_later, running_from));
}

/* The order within a poll. */

static void ask_later(struct peer *peer)
{
    peer->driver->ops->later(peer->driver);
    unwatch(peer);
}

static void check_order_in_a_poll(bool link_first, int priority)
{
    struct peer *a = make_peer('a');

    a->then = ask_later;
    if (link_first)
        watch(a, LINKPOOL_READ);
    start_user(priority);
    if (!link_first)
        watch(a, LINKPOOL_READ);
    say(a->far_end);
    say(user_ends[1]);
    alarm_at(driver->now);
    be_busy(0.001);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aAuL"));
    cr_assert(eq(u64, driver->turn, 1));
}

Test(driver_ev, links_come_before_the_users_watchers_and_later_after_them)
{
    check_order_in_a_poll(true, 0);
}

Test(driver_ev, the_order_does_not_hang_on_who_was_watched_first)
{
    check_order_in_a_poll(false, 0);
}

Test(driver_ev, the_order_holds_for_a_user_of_high_priority)
{
    check_order_in_a_poll(true, EV_MAXPRI - 2);
}

Test(driver_ev, the_order_holds_for_a_user_of_low_priority)
{
    check_order_in_a_poll(false, EV_MINPRI + 1);
}

/* Later. */

static void ask_later_as_user(struct ev_loop *l, struct ev_io *watcher, int events)
{
    tell_user(l, watcher, events);
    later();
    later();
}

Test(driver_ev, later_asked_for_twice_comes_once_in_the_same_turn)
{
    ev_set_cb(&user, ask_later_as_user);
    start_user(0);
    say(user_ends[1]);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "uL"));
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, "uL"));
}

static void tell_later_and_break(struct driver *d)
{
    tell_later(d);
    ev_break(loop, EVBREAK_ONE);
}

Test(driver_ev, later_asked_for_before_the_loop_runs_comes_before_it_blocks)
{
    driver->on_later = tell_later_and_break;
    start_user(0);
    later();
    ev_run(loop, 0);
    cr_assert(eq(str, story, "L"));
    cr_assert(eq(u64, driver->turn, 0));
}

Test(driver_ev, later_asked_for_between_runs_comes_with_nothing_watched)
{
    ev_run(loop, 0);
    later();
    ev_run(loop, 0);
    cr_assert(eq(str, story, "L"));
}

static void ask_later_before_poll(struct ev_loop *l, struct ev_prepare *watcher, int events)
{
    (void)l, (void)watcher, (void)events;
    later();
}

Test(driver_ev, later_asked_for_by_a_prepare_watcher_comes_before_the_loop_blocks)
{
    struct ev_prepare prepare;

    driver->on_later = tell_later_and_break;
    start_user(0);
    ev_prepare_init(&prepare, ask_later_before_poll);
    ev_prepare_start(loop, &prepare);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "L"));
    cr_assert(eq(u64, driver->turn, 0));
    ev_prepare_stop(loop, &prepare);
}

static void ask_later_thrice(struct driver *d)
{
    tell((char)('0' + d->turn));
    if (d->turn < 3) {
        d->ops->later(d);
        d->ops->later(d);
    }
}

Test(driver_ev, later_within_later_comes_after_the_next_poll_which_does_not_block)
{
    driver->on_later = ask_later_thrice;
    start_user(0);
    later();
    for (int i = 0; i < 3; i++)
        ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "0123"));
    cr_assert(eq(u64, driver->turn, 3));
}

Test(driver_ev, later_within_later_keeps_the_loop_until_it_came)
{
    driver->on_later = ask_later_thrice;
    later();
    cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, "0123"));
}

static void ask_later_and_be_ready(struct driver *d)
{
    if (story[0] == '\0') {
        d->ops->later(d);
        say(user_ends[1]);
    }
    tell_later(d);
}

Test(driver_ev, later_within_later_comes_after_the_users_watchers_of_that_poll)
{
    driver->on_later = ask_later_and_be_ready;
    start_user(0);
    later();
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "LuL"));
}

static void ask_later_as_low_user(struct ev_loop *l, struct ev_io *watcher, int events)
{
    tell_user(l, watcher, events);
    later();
}

static void ask_later_once(struct driver *d)
{
    if (!strchr(story, 'L'))
        d->ops->later(d);
    tell_later(d);
}

Test(driver_ev, later_asked_for_while_one_is_due_after_the_next_poll_joins_it)
{
    struct peer *a = make_peer('a');

    a->then = ask_later;
    driver->on_later = ask_later_once;
    ev_set_cb(&user, ask_later_as_low_user);
    start_user(EV_MINPRI); /* of the same priority as our later, and queued before it: runs after it */
    watch(a, LINKPOOL_READ);
    say(a->far_end);
    say(user_ends[1]);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aLu"));
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aLuL"));
}

static void run_within_later(struct driver *d)
{
    tell('(');
    if (d->turn < 2) {
        d->ops->later(d);
        ev_run(loop, EVRUN_ONCE);
    }
    tell(')');
}

Test(driver_ev, a_loop_run_within_later_gets_its_own)
{
    driver->on_later = run_within_later;
    start_user(0);
    later();
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, "((()))"));
}

static void ask_after_a_run_within_later(struct driver *d)
{
    bool outermost = d->turn == 0;

    tell((char)('0' + d->turn));
    if (outermost) {
        d->ops->later(d);
        ev_run(loop, EVRUN_NOWAIT); /* tells within, as turn 1 */
        d->ops->later(d);
    }
}

Test(driver_ev, later_asked_for_after_a_loop_run_within_later_waits_for_a_poll_too)
{
    driver->on_later = ask_after_a_run_within_later;
    later();
    ev_run(loop, 0);
    cr_assert(eq(str, story, "012"));
}

Test(driver_ev, later_costs_no_system_call)
{
    start_user(0);
    ev_run(loop, EVRUN_NOWAIT);
    count_from_here();
    driver->on_later = ask_later_thrice;
    later();
    for (int i = 0; i < 5; i++)
        ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(uint, adds + mods + dels, 0));
}

/* The alarm. */

static void check_due(struct driver *d)
{
    cr_assert(ge(dbl, d->now, *(double *)d->owner));
    tell_alarm(d);
}

static void expect_at(double *due)
{
    driver->owner = due;
    driver->on_alarm = check_due;
}

Test(driver_ev, the_alarm_rings_once_not_early_and_lets_the_loop_end)
{
    double due = driver->now + 0.005;

    expect_at(&due);
    alarm_at(due);
    cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, "A"));
    cr_assert(le(u64, driver->turn, 10)); /* it waited, and did not spin */
}

Test(driver_ev, an_alarm_moved_later_rings_then)
{
    double due = driver->now + 0.02;

    expect_at(&due);
    alarm_at(driver->now + 0.005);
    alarm_at(due);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "A"));
    cr_assert(le(u64, driver->turn, 10));
}

Test(driver_ev, an_alarm_moved_earlier_rings_then)
{
    double due = driver->now + 0.005;

    expect_at(&due);
    alarm_at(driver->now + FAR);
    alarm_at(due);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "A"));
}

Test(driver_ev, an_alarm_moved_later_and_back_rings_at_the_latest_word)
{
    double due = driver->now + 0.01;

    expect_at(&due);
    alarm_at(driver->now + 0.005);
    alarm_at(driver->now + FAR);
    alarm_at(due);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "A"));
}

Test(driver_ev, no_alarm_lets_the_loop_end)
{
    alarm_at(driver->now + FAR);
    alarm_at((double)INFINITY);
    cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, ""));
}

Test(driver_ev, an_alarm_in_the_past_rings_with_the_next_poll_which_does_not_block)
{
    start_user(0);
    alarm_at(driver->now - FAR);
    while (story[0] == '\0')
        ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "A"));
    cr_assert(le(u64, driver->turn, 2)); /* 2: where the clock's grain is coarse */
}

static void ask_again(struct driver *d)
{
    check_due(d);
    if (strlen(story) < 3) {
        *(double *)d->owner = d->now + 0.003;
        d->ops->alarm(d, *(double *)d->owner);
    }
}

Test(driver_ev, an_alarm_asked_for_within_the_alarm_rings)
{
    double due = driver->now + 0.003;

    expect_at(&due);
    driver->on_alarm = ask_again;
    alarm_at(due);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "AAA"));
    cr_assert(le(u64, driver->turn, 30));
}

static void move_alarm_out(struct peer *peer)
{
    peer->driver->ops->alarm(peer->driver, peer->driver->now + FAR);
    unwatch(peer);
}

static void stop_alarm(struct peer *peer)
{
    peer->driver->ops->alarm(peer->driver, (double)INFINITY);
    unwatch(peer);
}

static void check_pending_alarm_is_held_back_by(void (*then)(struct peer *))
{
    struct peer *a = make_peer('a');

    a->then = then;
    watch(a, LINKPOOL_WRITE);
    alarm_at(driver->now);
    be_busy(0.001);
    ev_run(loop, EVRUN_ONCE);
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, "a"));
}

Test(driver_ev, an_alarm_moved_out_in_the_turn_it_rings_does_not_ring)
{
    check_pending_alarm_is_held_back_by(move_alarm_out);
}

Test(driver_ev, an_alarm_ended_in_the_turn_it_rings_does_not_ring)
{
    check_pending_alarm_is_held_back_by(stop_alarm);
}

static void set_alarm_after_work(struct peer *peer)
{
    be_busy(0.004);
    *(double *)driver->owner = clock_now() + 0.004;
    alarm_at(*(double *)driver->owner);
    unwatch(peer);
}

static void set_alarm_after_work_and_update(struct peer *peer)
{
    be_busy(0.004);
    ev_now_update(loop);
    *(double *)driver->owner = clock_now() + 0.004;
    alarm_at(*(double *)driver->owner);
    unwatch(peer);
}

static void check_alarm_set_by(void (*then)(struct peer *))
{
    double due;
    struct peer *a = make_peer('a');

    expect_at(&due);
    a->then = then;
    watch(a, LINKPOOL_WRITE);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "aA"));
    cr_assert(le(u64, driver->turn, 10));
}

Test(driver_ev, an_alarm_set_on_an_old_loop_clock_is_not_early)
{
    check_alarm_set_by(set_alarm_after_work);
}

Test(driver_ev, an_alarm_set_on_an_updated_loop_clock_is_not_early)
{
    check_alarm_set_by(set_alarm_after_work_and_update);
}

static void race_a_timer(struct peer *peer)
{
    be_busy(0.4);
    ev_now_update(loop);
    alarm_at(peer->driver->now + 0.45);
    unwatch(peer);
}

static void tell_timer(struct ev_loop *l, struct ev_timer *timer, int events)
{
    (void)l, (void)timer, (void)events;
    tell('t');
}

Test(driver_ev, an_alarm_set_on_an_updated_loop_clock_is_not_late)
{
    struct peer *a = make_peer('a');
    struct ev_timer timer;

    ev_timer_init(&timer, tell_timer, 0.8, 0.); /* beside it: 0.45, or late, 0.85 */
    ev_timer_start(loop, &timer);
    a->then = race_a_timer;
    watch(a, LINKPOOL_WRITE);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "aAt"));
}

/* Descriptors. */

Test(driver_ev, a_watcher_hears_what_it_asked_for_and_no_more)
{
    struct peer *a = make_peer('a');

    watch(a, LINKPOOL_READ | LINKPOOL_WRITE);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(uint, a->events, LINKPOOL_WRITE));
    say(a->far_end);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(uint, a->events, LINKPOOL_READ | LINKPOOL_WRITE));
    want(a, LINKPOOL_READ);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(uint, a->events, LINKPOOL_READ));
    want(a, LINKPOOL_WRITE);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(uint, a->events, LINKPOOL_WRITE));
    want(a, 0);
    ev_run(loop, EVRUN_NOWAIT);
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, "aaaa"));
}

Test(driver_ev, an_end_of_file_is_heard_by_one_who_reads)
{
    struct peer *a = make_peer('a');

    watch(a, LINKPOOL_READ);
    cr_assert(eq(int, shutdown(a->far_end, SHUT_WR), 0));
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(uint, a->events, LINKPOOL_READ));
}

Test(driver_ev, stopping_what_is_not_watched_does_nothing)
{
    struct peer *a = make_peer('a');

    unwatch(a);
    watch(a, LINKPOOL_WRITE);
    unwatch(a);
    unwatch(a);
    cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, ""));
}

static void stop_both(struct peer *peer)
{
    unwatch(peer);
    unwatch(other(peer));
}

Test(driver_ev, a_stopped_watcher_is_not_called_in_the_same_turn)
{
    struct peer *first = make_peer('a'), *second = make_peer('a');

    first->then = second->then = stop_both;
    watch(first, LINKPOOL_WRITE);
    watch(second, LINKPOOL_WRITE);
    ev_run(loop, 0);
    cr_assert(eq(str, story, "a"));
}

/** Another socket with the same number: the kernel gives the lowest one free. */
static void swap_socket(struct peer *peer)
{
    int number = peer->fd;

    close_ends(peer);
    connect_ends(peer);
    cr_assert(eq(int, peer->fd, number));
}

static void check_same_number(unsigned before, bool poll_between, unsigned after)
{
    struct peer *a = make_peer('a');

    watch(a, before);
    ev_run(loop, EVRUN_NOWAIT);
    unwatch(a);
    if (poll_between)
        ev_run(loop, EVRUN_NOWAIT);
    swap_socket(a);
    memset(story, 0, sizeof story);
    watch(a, after);
    say(a->far_end);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "a"));
    cr_assert(eq(uint, a->events, after));
    unwatch(a);
}

Test(driver_ev, the_same_number_may_be_another_socket)
{
    unsigned masks[] = {LINKPOOL_READ, LINKPOOL_WRITE, LINKPOOL_READ | LINKPOOL_WRITE};

    for (int before = 0; before < 3; before++)
        for (int after = 0; after < 3; after++)
            for (int poll_between = 0; poll_between < 2; poll_between++)
                check_same_number(masks[before], poll_between, masks[after]);
}

static void change_other(struct peer *peer)
{
    struct peer *second = other(peer);

    peer->then = second->then = NULL;
    want(second, second->letter == 'k' ? (LINKPOOL_READ | LINKPOOL_WRITE) : LINKPOOL_READ);
}

static void check_change_of_a_pending_watcher(char letter, const char *expected)
{
    struct peer *first = make_peer(letter), *second = make_peer(letter);
    char wanted[8];

    strcpy(wanted, expected);
    first->then = second->then = change_other;
    watch(first, LINKPOOL_WRITE);
    watch(second, LINKPOOL_WRITE);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, wanted));
}

static bool is_pending(const struct peer *peer)
{
    return driver->ops->io_pending(driver, &peer->io);
}

static void look_at_other(struct peer *peer)
{
    struct peer *second = other(peer);

    tell(is_pending(peer) ? '!' : '-');
    tell(is_pending(second) ? 'p' : '-'); /* of the two it is told of the second that it has still to be told */
}

Test(driver_ev, what_came_with_the_poll_and_was_not_told_yet_is_known)
{
    struct peer *first = make_peer('a'), *second = make_peer('a');

    first->then = second->then = look_at_other;
    watch(first, LINKPOOL_READ);
    watch(second, LINKPOOL_READ);
    say(first->far_end);
    say(second->far_end);
    cr_assert(not(is_pending(first)));
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "a-pa--"));
}

Test(driver_ev, an_event_of_this_turn_survives_a_change_of_interest)
{
    check_change_of_a_pending_watcher('k', "kk");
}

Test(driver_ev, an_event_of_this_turn_no_longer_wanted_is_not_told)
{
    check_change_of_a_pending_watcher('d', "d");
}

Test(driver_ev, a_descriptor_is_added_once_in_its_life_and_never_removed)
{
    struct peer *a = make_peer('a');

    count_from_here();
    watch(a, LINKPOOL_WRITE);
    ev_run(loop, EVRUN_NOWAIT);
    for (int i = 0; i < 3; i++) {
        want(a, LINKPOOL_READ);
        want(a, LINKPOOL_READ | LINKPOOL_WRITE);
        want(a, LINKPOOL_READ);
        ev_run(loop, EVRUN_NOWAIT);
        want(a, LINKPOOL_WRITE);
        want(a, LINKPOOL_READ); /* and back: the kernel hears nothing */
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_assert(eq(uint, adds, 1));
    cr_assert(eq(uint, mods, 1));
    unwatch(a);
    close_ends(a);
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(uint, adds, 1));
    cr_assert(eq(uint, mods, 1));
    cr_assert(eq(uint, dels, 0));
}

Test(driver_ev, a_descriptor_that_the_kernel_refuses_is_told_once_and_can_be_stopped)
{
    struct peer *a = make_peer('a');

    refusal = ENOSPC; /* max_user_watches are in use */
    watch(a, LINKPOOL_READ);
    ev_run(loop, EVRUN_ONCE);
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, "a"));
    cr_assert(eq(uint, a->events, LINKPOOL_UNWATCHED));
    unwatch(a);
    say(a->far_end);
    watch(a, LINKPOOL_READ); /* the kernel takes it now */
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aa"));
    cr_assert(eq(uint, a->events, LINKPOOL_READ));
}

Test(driver_ev, a_stop_leaves_the_other_watchers_as_they_are)
{
    struct peer *a = make_peer('a'), *b = make_peer('b'), *c = make_peer('c'), *d = make_peer('d');

    watch(a, LINKPOOL_READ);
    watch(b, LINKPOOL_READ);
    watch(c, LINKPOOL_READ);
    unwatch(a);
    watch(d, LINKPOOL_READ);
    c->then = d->then = unwatch;
    say(c->far_end);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "c"));
    say(d->far_end);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "cd"));
}

Test(driver_ev, many_are_watched_and_stopped_in_any_order)
{
    for (int i = 0; i < MANY; i++) {
        make_peer('a');
        peers[i].then = unwatch;
        watch(&peers[i], LINKPOOL_READ);
    }
    for (int i = 0; i < MANY; i++)
        say(peers[i].far_end);
    for (int i = 0; i < MANY; i++)
        if (i % 10 != 3)
            unwatch(&peers[i * 7 % MANY]); /* 7 and MANY have no divisor in common */
    ev_run(loop, 0);                       /* each that is left stops itself */
    cr_assert(eq(str, story, "aaaaaaaaaa"));
}

/* Free. */

Test(driver_ev, what_is_still_watched_when_it_is_freed_is_no_longer)
{
    for (int i = 0; i < MANY; i++) {
        make_peer('a');
        watch(&peers[i], LINKPOOL_WRITE);
    }
    alarm_at(driver->now);
    later();
    free_the_driver();
    memset(peers, 0xff, sizeof peers); /* their memory may go */
    cr_assert(eq(int, ev_run(loop, 0), 0));
    cr_assert(eq(str, story, ""));
}

static void free_in_io(struct peer *peer)
{
    struct peer *second = other(peer);

    later();
    free_the_driver();
    memset(peer, 0xff, sizeof *peer);
    memset(second, 0xff, sizeof *second);
}

static void free_in_callback(struct driver *d)
{
    tell('F');
    d->ops->later(d);
    free_the_driver();
}

static void check_loop_goes_on(const char *expected)
{
    char wanted[16];

    strcpy(wanted, expected);
    start_user(0);
    ev_run(loop, EVRUN_ONCE);
    say(user_ends[1]);
    ev_run(loop, EVRUN_ONCE);
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert(eq(str, story, wanted));
    ev_io_stop(loop, &user);
    cr_assert(eq(int, ev_run(loop, 0), 0));
}

Test(driver_ev, may_be_freed_inside_a_descriptors_callback)
{
    struct peer *first = make_peer('a'), *second = make_peer('a');

    first->then = second->then = free_in_io;
    watch(first, LINKPOOL_WRITE);
    watch(second, LINKPOOL_WRITE);
    alarm_at(driver->now);
    check_loop_goes_on("au");
}

Test(driver_ev, may_be_freed_inside_on_alarm)
{
    struct peer *a = make_peer('a');

    driver->on_alarm = free_in_callback;
    watch(a, LINKPOOL_READ);
    alarm_at(driver->now);
    check_loop_goes_on("Fu");
}

Test(driver_ev, may_be_freed_inside_on_later)
{
    driver->on_later = free_in_callback;
    alarm_at(driver->now + FAR);
    later();
    say(user_ends[1]);
    check_loop_goes_on("Fuu");
}

static void free_in_nested_run(struct driver *d)
{
    tell('(');
    if (d->turn == 0) {
        d->ops->later(d);
        ev_run(loop, EVRUN_NOWAIT);
        cr_assert(eq(u64, d->turn, 1)); /* freed, but here until this callback returns */
    } else {
        free_the_driver();
    }
    tell(')');
}

Test(driver_ev, may_be_freed_inside_a_nested_callback)
{
    driver->on_later = free_in_nested_run;
    later();
    ev_run(loop, 0);
    cr_assert(eq(str, story, "(())"));
}

/* Several on one loop. */

static struct driver *second_driver;

static void tell_second(struct driver *d)
{
    cr_assert(eq(ptr, d, second_driver));
    tell('2');
}

static void make_second(void)
{
    second_driver = driver_ev_new(loop);
    cr_assert(ne(ptr, second_driver, NULL));
    second_driver->on_alarm = tell_second;
    second_driver->on_later = tell_second;
}

Test(driver_ev, two_share_a_loop_each_with_its_own)
{
    struct peer *a = make_peer('a'), *b = make_peer('b');

    ev_run(loop, EVRUN_NOWAIT);
    make_second();
    a->then = b->then = ask_later;
    b->driver = second_driver;
    watch(a, LINKPOOL_READ);
    watch(b, LINKPOOL_READ);
    say(a->far_end);
    alarm_at(driver->now + FAR);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aL"));
    say(b->far_end);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aLb2"));
    second_driver->ops->alarm(second_driver, second_driver->now);
    ev_run(loop, EVRUN_ONCE);
    cr_assert(eq(str, story, "aLb22"));
    cr_assert(eq(u64, driver->turn, 4));
    cr_assert(eq(u64, second_driver->turn, 3));
    driver_free(second_driver);
}

static void free_second(struct driver *d)
{
    tell_later(d);
    driver_free(second_driver);
}

Test(driver_ev, one_may_be_freed_inside_the_callback_of_another)
{
    struct peer *b = make_peer('b');

    make_second();
    driver->on_later = free_second;
    b->driver = second_driver;
    watch(b, LINKPOOL_READ);
    second_driver->ops->later(second_driver);
    later(); /* fed last: runs first */
    ev_run(loop, 0);
    cr_assert(eq(str, story, "L"));
    free_the_driver();
}
