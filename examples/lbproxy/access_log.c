/* access_log.c - lines for requests, gathered in one buffer and written at the end of the loop's turn.
 *
 * The buffer begins with a whole line, or with the rest of one that is half written already (`owed`); it ends with a
 * whole line. A regular file is cut back to its last whole line when a write ends within one. A pipe gets at most
 * PIPE_BUF bytes at once, which it takes all or not at all. Where neither helps, a terminal or a socket, the rest of a
 * line begun is written before anything else. */
#include "examples/lbproxy/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ROOM = 65536,
    MAX_WORD = 160,    /* bytes of each text but the target */
    MAX_REST = 1024,   /* bytes of a line but for its target: four such texts, a time, seven numbers */
    MAX_TARGET = 8192, /* as long as a request's may be */
    STAMP = 20         /* 2026-11-30T06:04:17. */
};

struct access_log {
    struct ev_loop *loop;
    const char *path;
    int fd;
    bool regular; /* a file that can be cut back */
    bool owed;
    size_t max_target;
    ev_prepare turn_end;
    time_t second; /* that the stamp is of */
    char stamp[STAMP + 1];
    uint64_t dropped;
    size_t n; /* bytes gathered */
    char lines[ROOM];
};

/* ---- writing ---- */

static size_t count_lines(const char *at, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += at[i] == '\n';
    return count;
}

/* The length of the whole lines at `at` that fit into `most` bytes; all of `n` end with one. */
static size_t whole_lines(const char *at, size_t n, size_t most)
{
    if (n <= most)
        return n;
    while (most > 0 && at[most - 1] != '\n')
        most--;
    return most;
}

/* Takes the last bytes of a file off again, unless another has written behind them. */
static bool cut_back(int fd, size_t n)
{
    off_t end = lseek(fd, 0, SEEK_CUR);
    off_t to = end - (off_t)n;
    struct stat file;

    return end >= 0 && fstat(fd, &file) == 0 && file.st_size == end && ftruncate(fd, to) == 0 &&
           lseek(fd, to, SEEK_SET) == to;
}

/* Drops the lines from `end` on, where a write has ended. A line it ended in is taken back or, where that cannot be,
 * owed. */
static void drop(struct access_log *log, size_t begin, size_t end)
{
    bool inside = end > 0 ? log->lines[end - 1] != '\n' : log->owed;
    size_t written = 0;
    size_t keep = 0;

    while (written < end - begin && log->lines[end - written - 1] != '\n')
        written++;
    if (inside && !(log->regular && !log->owed && cut_back(log->fd, written))) {
        while (log->lines[end + keep] != '\n')
            keep++;
        keep++;
    }
    log->dropped += count_lines(log->lines + end + keep, log->n - end - keep);
    memmove(log->lines, log->lines + end, keep);
    log->n = keep;
    log->owed = keep > 0;
}

static void flush(struct access_log *log)
{
    size_t most = log->regular ? ROOM : PIPE_BUF;
    size_t begin = 0;

    while (begin < log->n) {
        size_t n = whole_lines(log->lines + begin, log->n - begin, most);
        ssize_t written;

        do
            written = write(log->fd, log->lines + begin, n);
        while (written < 0 && errno == EINTR);
        if (written < 0 || (size_t)written < n) {
            drop(log, begin, begin + (written < 0 ? 0 : (size_t)written));
            return;
        }
        begin += n;
    }
    log->n = 0;
    log->owed = false;
}

static void on_turn_end(struct ev_loop *loop, ev_prepare *turn_end, int events)
{
    struct access_log *log = turn_end->data;

    (void)loop, (void)events;
    if (log->n > 0)
        flush(log);
}

/* ---- a line ---- */

static char *put_word(char *to, const char *word)
{
    size_t n = 0;

    if (word == NULL)
        word = "-";
    for (; n < MAX_WORD && word[n] != '\0'; n++)
        to[n] = word[n];
    to[n] = ' ';
    return to + n + 1;
}

/* Whatever is in a target, it is one word of one line. */
static char *put_target(char *to, const char *target, size_t n, size_t max)
{
    bool cut = n > max;

    if (n == 0)
        return put_word(to, NULL);
    if (cut)
        n = max - 3;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(target[i] >= '!' && target[i] <= '~' ? target[i] : '?');
    return put_word(to + n, cut ? "..." : "");
}

static char *put_digits(char *to, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

static char *put_number(char *to, uint64_t number)
{
    to = put_digits(to, number);
    *to = ' ';
    return to + 1;
}

static char *put_fraction(char *to, unsigned number, unsigned digits)
{
    for (unsigned i = digits; i > 0; number /= 10)
        to[--i] = (char)('0' + number % 10);
    return to + digits;
}

static char *put_seconds(char *to, double seconds)
{
    uint64_t us;

    if (!(seconds >= 0))
        return put_word(to, NULL);
    us = (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e6 + 0.5);
    to = put_digits(to, us / 1000000);
    *to = '.';
    to = put_fraction(to + 1, (unsigned)(us % 1000000), 6);
    *to = ' ';
    return to + 1;
}

static char *put_time(struct access_log *log, char *to)
{
    double now = ev_now(log->loop);
    time_t second = (time_t)now;
    struct tm parts;

    if (second != log->second && gmtime_r(&second, &parts) != NULL) {
        strftime(log->stamp, sizeof log->stamp, "%Y-%m-%dT%H:%M:%S.", &parts);
        log->second = second;
    }
    memcpy(to, log->stamp, STAMP);
    to = put_fraction(to + STAMP, (unsigned)((now - (double)second) * 1000), 3);
    return put_word(to, "Z");
}

void access_log_write(struct access_log *log, const struct access_entry *entry)
{
    char *to;

    if (ROOM - log->n < MAX_REST + log->max_target)
        flush(log);
    to = put_time(log, log->lines + log->n);
    to = put_word(to, entry->client);
    to = put_word(to, entry->method);
    to = put_target(to, entry->target, entry->target_n, log->max_target);
    to = entry->status == 0 ? put_word(to, NULL) : put_number(to, entry->status);
    to = put_number(to, entry->bytes);
    to = put_seconds(to, entry->waited);
    to = put_seconds(to, entry->total);
    to = put_word(to, entry->backend);
    to = entry->reused < 0 ? put_word(to, NULL) : put_number(to, entry->reused != 0);
    to = put_number(to, entry->tries);
    to = put_word(to, entry->outcome);
    to[-1] = '\n';
    log->n = (size_t)(to - log->lines);
}

/* ---- opening ---- */

/* An open file of our own, where the system lets us: it is non-blocking here, and stays as it is to those who share
 * the standard output. What is printed there later goes behind our lines, not over them. */
static int open_output(void)
{
    int fd = open("/proc/self/fd/1", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int flags = fcntl(STDOUT_FILENO, F_GETFL);

    if (fd < 0) {
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        flags |= O_NONBLOCK;
    }
    if (fd >= 0)
        fcntl(STDOUT_FILENO, F_SETFL, flags | O_APPEND);
    return fd;
}

static bool is_output(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int open_file(const char *path)
{
    if (is_output(path))
        return open_output();
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
}

static void take_file(struct access_log *log, int fd)
{
    struct stat file;

    log->fd = fd;
    log->regular = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
    log->max_target = log->regular ? MAX_TARGET : PIPE_BUF - MAX_REST;
}

struct access_log *access_log_new(struct ev_loop *loop, const char *path)
{
    int fd = open_file(path);
    struct access_log *log;

    if (fd < 0)
        return NULL;
    log = calloc(1, sizeof *log);
    if (log == NULL) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    log->loop = loop;
    log->path = path;
    take_file(log, fd);
    ev_prepare_init(&log->turn_end, on_turn_end);
    ev_set_priority(&log->turn_end, EV_MINPRI); /* after all others of this turn, that may still add a line */
    log->turn_end.data = log;
    ev_prepare_start(loop, &log->turn_end);
    ev_unref(loop);
    return log;
}

int access_log_reopen(struct access_log *log)
{
    int fd;

    flush(log);
    if (is_output(log->path))
        return 0;
    fd = open_file(log->path);
    if (fd < 0)
        return errno;
    close(log->fd);
    take_file(log, fd);
    if (log->owed) { /* to the old one */
        log->n = 0;
        log->owed = false;
        log->dropped++;
    }
    return 0;
}

uint64_t access_log_dropped(const struct access_log *log)
{
    return log == NULL ? 0 : log->dropped;
}

void access_log_free(struct access_log *log)
{
    if (log == NULL)
        return;
    flush(log);
    ev_ref(log->loop);
    ev_prepare_stop(log->loop, &log->turn_end);
    close(log->fd);
    free(log);
}
