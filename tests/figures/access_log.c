/* access_log.c - lines of the access log in real files, pipes and a terminal: each whole, or not there and counted. */
#define _GNU_SOURCE /* posix_openpt(), which is X/Open */
#include "examples/lbproxy/access_log.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum {
    MUCH = 4 << 20 /* bytes: more than any test writes */
};

static struct ev_loop *loop;
static char folder[] = "/tmp/linkpool-log.XXXXXX";
static char path[64], moved[64];
static char text[MUCH];

static void set_up(void)
{
    loop = ev_loop_new(0);
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(moved, sizeof moved, "%s/log.1", folder);
}

static void clean_up(void)
{
    unlink(path);
    unlink(moved);
    rmdir(folder);
    ev_loop_destroy(loop);
}

TestSuite(access_log, .init = set_up, .fini = clean_up, .timeout = 60);

static struct access_log *open_log(void)
{
    struct access_log *log = access_log_new(loop, path);

    cr_assert(ne(ptr, log, NULL));
    return log;
}

static const struct access_entry plain = {.client = "127.0.0.1",
    .method = "GET",
    .target = "/a?b=1",
    .target_n = 6,
    .status = 200,
    .bytes = 1024,
    .waited = 0.000012,
    .total = 0.000345,
    .backend = "127.0.0.1:8080",
    .reused = 1,
    .tries = 1,
    .outcome = "ok"};

/* A line that can be told from others: its bytes are its number. */
static void write_numbered(struct access_log *log, unsigned number)
{
    struct access_entry entry = plain;

    entry.bytes = number;
    access_log_write(log, &entry);
}

static void end_turn(void)
{
    ev_run(loop, EVRUN_NOWAIT);
}

/* What can be read from a descriptor now, after the first n bytes of `text`. @return their new number. */
static size_t read_more(int fd, size_t n)
{
    ssize_t got;

    while ((got = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    return n;
}

static void read_all(int fd)
{
    read_more(fd, 0);
}

static const char *read_file(const char *name)
{
    int fd = open(name, O_RDONLY);

    cr_assert(ge(int, fd, 0), "%s", name);
    read_all(fd);
    close(fd);
    return text;
}

/* The line after its time. */
static const char *rest(const char *line)
{
    return line + strlen("2026-11-30T06:04:17.123Z ");
}

/* Every line of `text` is whole. @return how many. */
static size_t count_whole_lines(void)
{
    regex_t whole;
    size_t count = 0;
    char *line, *next;

    cr_assert(zero(int, regcomp(&whole,
                            "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z 127\\.0\\.0\\.1 GET "
                            "[!-~]+ 200 [0-9]+ 0\\.000012 0\\.000345 127\\.0\\.0\\.1:8080 1 1 ok$",
                            REG_EXTENDED | REG_NOSUB)));
    for (line = text; *line != '\0'; line = next + 1) {
        next = strchr(line, '\n');
        cr_assert(ne(ptr, next, NULL), "half a line at the end: %s", line);
        *next = '\0';
        cr_assert(zero(int, regexec(&whole, line, 0, NULL, 0)), "not a line: %s", line);
        count++;
    }
    regfree(&whole);
    return count;
}

/* ---- what a line says ---- */

Test(access_log, a_line_has_its_fields_in_order)
{
    struct access_log *log = open_log();
    time_t now = (time_t)ev_now(loop);
    char second[32];

    strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S.", gmtime(&now));
    access_log_write(log, &plain);
    access_log_free(log);
    read_file(path);
    cr_assert(zero(int, strncmp(text, second, strlen(second))), "%s", text);
    cr_assert(eq(str, (char *)rest(text), "127.0.0.1 GET /a?b=1 200 1024 0.000012 0.000345 127.0.0.1:8080 1 1 ok\n"));
    cr_assert(eq(sz, count_whole_lines(), 1));
}

Test(access_log, the_time_is_that_of_the_turn_in_milliseconds)
{
    struct access_log *log = open_log();
    double now = ev_now(loop);
    char fraction[8];

    snprintf(fraction, sizeof fraction, ".%03dZ ", (int)((now - floor(now)) * 1000));
    access_log_write(log, &plain);
    access_log_free(log);
    cr_assert(zero(int, strncmp(read_file(path) + 19, fraction, 6)), "%s, %s", text, fraction);
}

Test(access_log, what_is_absent_is_a_dash)
{
    struct access_log *log = open_log();
    struct access_entry none = {.waited = -1, .total = (double)NAN, .reused = -1};

    access_log_write(log, &none);
    access_log_free(log);
    cr_assert(eq(str, (char *)rest(read_file(path)), "- - - - 0 - - - - 0 -\n"));
}

Test(access_log, numbers_are_written_in_full)
{
    struct access_log *log = open_log();
    struct access_entry entry = plain;

    entry.bytes = UINT64_MAX;
    entry.waited = 0.9999996;
    entry.total = 1234567.0000019;
    entry.reused = 0;
    entry.tries = 2;
    access_log_write(log, &entry);
    entry.bytes = 0;
    entry.waited = 0;
    entry.total = (double)INFINITY;
    access_log_write(log, &entry);
    access_log_free(log);
    read_file(path);
    cr_assert(ne(ptr, strstr(text, " 200 18446744073709551615 1.000000 1234567.000002 127.0.0.1:8080 0 2 ok\n"), NULL),
        "%s", text);
    cr_assert(ne(ptr, strstr(text, " 200 0 0.000000 1000000000.000000 127.0.0.1:8080 0 2 ok\n"), NULL), "%s", text);
}

Test(access_log, a_target_is_one_word_of_one_line_whatever_it_has)
{
    struct access_log *log = open_log();
    struct access_entry entry = plain;

    entry.target = "/a b\r\n\t\0\x7f\x80\xff~!";
    entry.target_n = 13;
    access_log_write(log, &entry);
    access_log_free(log);
    cr_assert(ne(ptr, strstr(read_file(path), " GET /a?b???????~! 200 "), NULL), "%s", text);
    cr_assert(eq(sz, count_whole_lines(), 1));
}

/* The longest whole target, and one byte more. */
static void expect_cut(size_t max)
{
    const char *target = strstr(text, " GET /");
    const char *second;

    cr_assert(eq(sz, strcspn(target + 5, " "), max));
    cr_assert(eq(chr, target[5 + max - 1], 'x'));
    second = strstr(target + 5, " GET /");
    cr_assert(eq(sz, strcspn(second + 5, " "), max));
    cr_assert(zero(int, strncmp(second + 5 + max - 4, "x... ", 5)));
    cr_assert(eq(sz, count_whole_lines(), 2));
}

static void write_long_targets(struct access_log *log, size_t max)
{
    struct access_entry entry = plain;
    char *target = malloc(max + 1);

    memset(target, 'x', max + 1);
    target[0] = '/';
    entry.target = target;
    for (entry.target_n = max; entry.target_n <= max + 1; entry.target_n++)
        access_log_write(log, &entry);
    free(target);
}

Test(access_log, a_target_over_8192_bytes_is_cut)
{
    struct access_log *log = open_log();

    write_long_targets(log, 8192);
    access_log_free(log);
    read_file(path);
    expect_cut(8192);
}

/* ---- when lines are written ---- */

Test(access_log, lines_are_written_at_the_end_of_the_turn)
{
    struct access_log *log = open_log();

    write_numbered(log, 1);
    write_numbered(log, 2);
    cr_assert(eq(str, (char *)read_file(path), ""));
    end_turn();
    read_file(path);
    cr_assert(eq(sz, count_whole_lines(), 2));
    access_log_free(log);
}

static void write_one_more(struct ev_loop *its_loop, ev_prepare *watcher, int events)
{
    (void)its_loop, (void)events;
    write_numbered(watcher->data, 2);
    ev_prepare_stop(loop, watcher);
}

Test(access_log, a_line_added_at_the_end_of_a_turn_does_not_wait_for_the_next)
{
    struct access_log *log = open_log();
    ev_prepare late;

    ev_prepare_init(&late, write_one_more);
    ev_set_priority(&late, EV_MINPRI);
    late.data = log;
    ev_prepare_start(loop, &late);
    end_turn();
    read_file(path);
    cr_assert(eq(sz, count_whole_lines(), 1));
    access_log_free(log);
}

Test(access_log, does_not_keep_the_loop_running)
{
    struct access_log *log = open_log();

    ev_run(loop, 0); /* the suite's time-out ends it otherwise */
    access_log_free(log);
}

Test(access_log, a_turn_may_have_more_lines_than_the_buffer_holds)
{
    struct access_log *log = open_log();
    const char *at;

    for (unsigned i = 0; i < 10000; i++)
        write_numbered(log, i);
    access_log_free(log);
    at = read_file(path);
    for (unsigned i = 0; i < 10000; i++) {
        char number[32];

        snprintf(number, sizeof number, " 200 %u 0.000012 ", i);
        at = strstr(at, number);
        cr_assert(ne(ptr, (void *)at, NULL), "%u is not in its place", i);
    }
    cr_assert(eq(sz, count_whole_lines(), 10000));
}

/* ---- opening ---- */

Test(access_log, a_file_that_is_there_is_appended_to)
{
    for (unsigned i = 1; i <= 3; i++) {
        struct access_log *log = open_log();

        write_numbered(log, i);
        access_log_free(log);
        read_file(path);
        cr_assert(eq(sz, count_whole_lines(), i));
    }
}

Test(access_log, what_cannot_be_opened_is_refused)
{
    cr_assert(eq(ptr, access_log_new(loop, folder), NULL));
    cr_assert(eq(int, errno, EISDIR));
    cr_assert(zero(int, mkfifo(path, 0600)));
    cr_assert(eq(ptr, access_log_new(loop, path), NULL));
    cr_assert(eq(int, errno, ENXIO));
}

Test(access_log, reopening_goes_on_in_a_new_file_and_loses_nothing)
{
    struct access_log *log = open_log();

    write_numbered(log, 1); /* still in the buffer */
    cr_assert(zero(int, rename(path, moved)));
    cr_assert(zero(int, access_log_reopen(log)));
    write_numbered(log, 2);
    access_log_free(log);
    cr_assert(ne(ptr, strstr(read_file(moved), " 200 1 "), NULL), "%s", text);
    cr_assert(eq(sz, count_whole_lines(), 1));
    cr_assert(ne(ptr, strstr(read_file(path), " 200 2 "), NULL), "%s", text);
    cr_assert(eq(sz, count_whole_lines(), 1));
}

Test(access_log, where_reopening_fails_the_old_file_goes_on)
{
    struct access_log *log = open_log();

    write_numbered(log, 1);
    cr_assert(zero(int, rename(path, moved)));
    cr_assert(zero(int, mkdir(path, 0700)));
    cr_assert(eq(int, access_log_reopen(log), EISDIR));
    write_numbered(log, 2);
    access_log_free(log);
    cr_assert(zero(int, rmdir(path)));
    read_file(moved);
    cr_assert(eq(sz, count_whole_lines(), 2));
    cr_assert(zero(u64, access_log_dropped(NULL)));
}

/* ---- what cannot be written ---- */

static void limit_files(rlim_t size)
{
    struct rlimit limit = {.rlim_cur = size, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
}

Test(access_log, a_full_disk_loses_whole_lines_and_counts_them)
{
    struct access_log *log = open_log();
    unsigned written = 0;

    for (unsigned turn = 0; turn < 50; turn++) {
        limit_files(turn % 10 < 5 ? 1000 + 777 * turn : RLIM_INFINITY);
        for (unsigned i = 0; i < turn; i++)
            write_numbered(log, written++);
        end_turn();
        limit_files(RLIM_INFINITY);
        read_file(path);
        cr_assert(eq(u64, count_whole_lines() + access_log_dropped(log), written));
    }
    cr_assert(lt(u64, 0, access_log_dropped(log)));
    cr_assert(lt(u64, access_log_dropped(log), written / 2));
    access_log_free(log);
}

/* Writes until lines are dropped, reads what there is, and so on. A write that blocked would end in the time-out. */
static void fill_again_and_again(struct access_log *log, int reader)
{
    unsigned written = 0, whole = 0;

    for (unsigned round = 0; round < 5; round++) {
        uint64_t before = access_log_dropped(log);

        while (access_log_dropped(log) == before) {
            for (unsigned i = 0; i < 100; i++)
                write_numbered(log, written++);
            end_turn();
        }
        read_all(reader);
        whole += count_whole_lines();
        cr_assert(eq(u64, whole + access_log_dropped(log), written));
    }
    cr_assert(lt(uint, 500, whole));
}

Test(access_log, a_full_pipe_loses_whole_lines_and_counts_them)
{
    struct access_log *log;
    int reader;

    cr_assert(zero(int, mkfifo(path, 0600)));
    reader = open(path, O_RDONLY | O_NONBLOCK);
    log = open_log();
    fill_again_and_again(log, reader);
    access_log_free(log);
    close(reader);
}

Test(access_log, a_line_to_a_pipe_is_at_most_pipe_buf_long)
{
    struct access_log *log;
    int reader;

    cr_assert(zero(int, mkfifo(path, 0600)));
    reader = open(path, O_RDONLY | O_NONBLOCK);
    log = open_log();
    write_long_targets(log, 3072);
    end_turn();
    read_all(reader);
    expect_cut(3072);
    access_log_free(log);
    close(reader);
}

Test(access_log, a_pipe_whose_reader_has_gone_costs_lines_only)
{
    struct access_log *log;
    int reader;

    signal(SIGPIPE, SIG_IGN); /* as lbproxy does */
    cr_assert(zero(int, mkfifo(path, 0600)));
    reader = open(path, O_RDONLY | O_NONBLOCK);
    log = open_log();
    close(reader);
    write_numbered(log, 1);
    end_turn();
    cr_assert(eq(u64, access_log_dropped(log), 1));
    reader = open(path, O_RDONLY | O_NONBLOCK);
    write_numbered(log, 2);
    access_log_free(log);
    read_all(reader);
    cr_assert(eq(sz, count_whole_lines(), 1));
    close(reader);
}

/* ---- the standard output ---- */

/* Makes it `fd`, and opens the log on it. What Criterion says goes elsewhere. */
static struct access_log *log_to(int fd)
{
    struct access_log *log;

    cr_assert(eq(int, dup2(fd, STDOUT_FILENO), STDOUT_FILENO));
    close(fd);
    log = access_log_new(loop, "-");
    cr_assert(ne(ptr, log, NULL));
    return log;
}

Test(access_log, a_pipe_as_the_standard_output_stays_as_it_is_to_others)
{
    struct access_log *log;
    int ends[2];

    cr_assert(zero(int, pipe(ends)));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    log = log_to(ends[1]);
    cr_assert(zero(int, fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK));
    fill_again_and_again(log, ends[0]);
    cr_assert(zero(int, access_log_reopen(log)));
    access_log_free(log);
    close(ends[0]);
}

/* @return the terminal, and in *far its other end, which is read without waiting. */
static int open_terminal(int *far)
{
    struct termios raw;
    int fd;

    *far = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    cr_assert(ge(int, *far, 0));
    cr_assert(zero(int, grantpt(*far) | unlockpt(*far)));
    fd = open(ptsname(*far), O_RDWR | O_NOCTTY);
    cr_assert(zero(int, tcgetattr(fd, &raw)));
    cfmakeraw(&raw);
    cr_assert(zero(int, tcsetattr(fd, TCSANOW, &raw)));
    return fd;
}

/* A terminal takes any part of a line. */
Test(access_log, a_terminal_gets_the_rest_of_a_line_before_anything_else)
{
    int far;
    struct access_log *log = log_to(open_terminal(&far));
    unsigned written = 0;
    size_t n = 0;

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 1500 + round; i++)
            write_numbered(log, written++);
        end_turn();
        end_turn();
        n = read_more(far, n);
    }
    end_turn();
    read_more(far, n);
    cr_assert(lt(u64, 0, access_log_dropped(log)));
    cr_assert(eq(u64, count_whole_lines() + access_log_dropped(log), written));
    access_log_free(log);
    close(far);
}

Test(access_log, what_is_printed_later_does_not_overwrite_lines_in_a_file)
{
    struct access_log *log = log_to(open(path, O_WRONLY | O_CREAT, 0600));

    write_numbered(log, 1);
    end_turn();
    cr_assert(eq(int, (int)write(STDOUT_FILENO, "said\n", 5), 5));
    write_numbered(log, 2);
    access_log_free(log);
    cr_assert(ne(ptr, strstr(read_file(path), " ok\nsaid\n20"), NULL), "%s", text);
}

/* ---- several threads ---- */

enum {
    THREADS = 4,
    TURNS = 500
};

static void *write_turns(void *data)
{
    struct ev_loop *mine = ev_loop_new(0);
    struct access_log *log = access_log_new(mine, path);

    (void)data;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned i = 0; i < 10; i++)
            write_numbered(log, i);
        ev_run(mine, EVRUN_NOWAIT);
    }
    access_log_free(log);
    ev_loop_destroy(mine);
    return NULL;
}

Test(access_log, threads_append_whole_lines_to_one_file)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        cr_assert(zero(int, pthread_create(&threads[i], NULL, write_turns, NULL)));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    read_file(path);
    cr_assert(eq(sz, count_whole_lines(), THREADS * TURNS * 10));
}
