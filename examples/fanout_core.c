/* fanout_core.c - a lease a backend, all at once.
 *
 * Each part of a question is waiting for its link, talking on it, or over; the question is complete when all are over.
 * A link that had served before may have died unseen: then, when not a byte of an answer has come, the part asks once
 * more on a fresh one. That is right for questions that may be asked twice; a line that must not would end here. */
#include "examples/fanout_core.h"

#include <errno.h>
#include <linkpool/pool.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fanout {
    unsigned n;
    struct pool_host *hosts[FANOUT_MAX_BACKENDS];
    char *backends[FANOUT_MAX_BACKENDS];
};

struct part {
    struct fanout_question *question;
    struct pool_lease lease;
    bool over, answered, repeated;
    size_t sent, got;
    char answer[FANOUT_MAX_ANSWER + 3]; /* the line's end and a NUL too */
    char why[256];
};

struct fanout_question {
    struct fanout *fanout;
    void (*done)(struct fanout_question *question, void *data);
    void *data;
    bool asking; /* still inside fanout_ask() */
    unsigned left;
    size_t n;
    char line[FANOUT_MAX_QUESTION + 2];
    struct part parts[];
};

/* ---- a part's end ---- */

static void let_go(struct part *part, enum pool_disposition disposition)
{
    if (part->lease.channel != NULL)
        pool_release(&part->lease, disposition);
    else
        pool_cancel(&part->lease); /* when it waits; else nothing happens */
}

/* The last line of whatever calls it: the question may be gone after it. */
static void part_over(struct part *part)
{
    struct fanout_question *question = part->question;

    part->over = true;
    if (--question->left == 0 && !question->asking && question->done != NULL)
        question->done(question, question->data);
}

static void part_missing(struct part *part, const char *why)
{
    snprintf(part->why, sizeof part->why, "%s", why);
    let_go(part, POOL_DISCARD);
    part_over(part);
}

static void start_part(struct part *part, unsigned flags);

/* The link broke or ended before the whole answer. */
static void part_lost(struct part *part)
{
    if (part->lease.reused && part->got == 0 && !part->repeated) {
        part->repeated = true;
        let_go(part, POOL_DISCARD);
        start_part(part, POOL_FRESH);
        return;
    }
    part_missing(part,
        part->got > 0 ? "the connection ended in the middle of the answer" : "the connection ended without an answer");
}

/* ---- talking ---- */

static void send_line(struct part *part)
{
    struct fanout_question *question = part->question;
    struct iovec rest = {question->line + part->sent, question->n - part->sent};
    ssize_t n = channel_writev(part->lease.channel, &rest, 1);

    if (n < 0 && n != LINKPOOL_EAGAIN) {
        part_lost(part);
        return;
    }
    part->sent += n > 0 ? (size_t)n : 0;
    channel_want(part->lease.channel, part->sent < question->n ? LINKPOOL_READ | LINKPOOL_WRITE : LINKPOOL_READ);
}

/* What follows a whole line was not asked for: then the link is not lent again. */
static void take_answer(struct part *part, char *line_end)
{
    bool clean = line_end + 1 == part->answer + part->got && part->sent == part->question->n;

    if (line_end > part->answer && line_end[-1] == '\r')
        line_end--;
    *line_end = '\0';
    part->answered = true;
    let_go(part, clean ? POOL_REUSE : POOL_DISCARD);
    part_over(part);
}

static void on_readable(struct channel *channel)
{
    struct part *part = channel_data(channel);
    size_t room = sizeof part->answer - 1 - part->got;
    ssize_t n = channel_read(channel, part->answer + part->got, room);
    char *line_end;

    if (n == LINKPOOL_EAGAIN)
        return;
    if (n <= 0) {
        part_lost(part);
        return;
    }
    line_end = memchr(part->answer + part->got, '\n', (size_t)n);
    part->got += (size_t)n;
    if (line_end != NULL)
        take_answer(part, line_end);
    else if ((size_t)n == room)
        part_missing(part, "its answer is too long");
}

static void on_writable(struct channel *channel)
{
    send_line(channel_data(channel));
}

static const struct channel_events events = {.readable = on_readable, .writable = on_writable};

static void talk(struct part *part)
{
    part->sent = 0;
    channel_set_data(part->lease.channel, part);
    channel_watch(part->lease.channel, &events, LINKPOOL_READ);
    send_line(part);
}

static void fail_part(struct part *part)
{
    char why[sizeof part->why];

    pool_explain(&part->lease, why, sizeof why);
    part_missing(part, why);
}

static void on_leased(struct pool_lease *lease)
{
    if (lease->status == POOL_READY)
        talk(lease->data);
    else
        fail_part(lease->data);
}

static void on_taken(struct pool_lease *lease)
{
    part_missing(lease->data, "the pool has closed the connection");
}

static void start_part(struct part *part, unsigned flags)
{
    const struct fanout_question *question = part->question;
    int status;

    part->lease =
        (struct pool_lease){.done = on_leased, .closed = on_taken, .data = part, .timeout = INFINITY, .flags = flags};
    status = pool_acquire_host(question->fanout->hosts[part - question->parts], &part->lease);
    if (status == POOL_READY)
        talk(part);
    else if (status < 0)
        fail_part(part);
}

/* ---- the whole ---- */

struct fanout *fanout_new(struct pool *pool, const char *const *backends, unsigned n)
{
    struct fanout *fanout;

    if (n == 0 || n > FANOUT_MAX_BACKENDS) {
        errno = EINVAL;
        return NULL;
    }
    fanout = calloc(1, sizeof *fanout);
    if (fanout == NULL)
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        fanout->backends[i] = strdup(backends[i]);
        fanout->hosts[i] = fanout->backends[i] == NULL ? NULL : pool_host(pool, backends[i]);
        fanout->n = i + 1;
        if (fanout->hosts[i] == NULL) {
            int error = errno;

            fanout_free(fanout);
            errno = error;
            return NULL;
        }
    }
    return fanout;
}

void fanout_free(struct fanout *fanout)
{
    if (fanout == NULL)
        return;
    for (unsigned i = 0; i < fanout->n; i++) {
        if (fanout->hosts[i] != NULL)
            pool_host_drop(fanout->hosts[i]);
        free(fanout->backends[i]);
    }
    free(fanout);
}

struct fanout_question *fanout_ask(struct fanout *fanout, const char *line, size_t n,
    void (*done)(struct fanout_question *question, void *data), void *data)
{
    struct fanout_question *question;

    if (n > FANOUT_MAX_QUESTION || memchr(line, '\n', n) != NULL) {
        errno = EINVAL;
        return NULL;
    }
    question = calloc(1, sizeof *question + fanout->n * sizeof question->parts[0]);
    if (question == NULL)
        return NULL;
    question->fanout = fanout;
    question->done = done;
    question->data = data;
    question->left = fanout->n;
    memcpy(question->line, line, n);
    memcpy(question->line + n, "\r\n", 2);
    question->n = n + 2;
    question->asking = true;
    for (unsigned i = 0; i < fanout->n; i++) {
        question->parts[i].question = question;
        start_part(&question->parts[i], 0);
    }
    question->asking = false;
    return question;
}

bool fanout_is_complete(const struct fanout_question *question)
{
    return question->left == 0;
}

void fanout_deadline(struct fanout_question *question)
{
    question->done = NULL;
    for (unsigned i = 0; i < question->fanout->n; i++) {
        struct part *part = &question->parts[i];

        if (part->over)
            continue;
        if (part->lease.channel == NULL)
            fail_part(part);
        else
            part_missing(part, part->got > 0 ? "only part of its answer in time" : "no answer in time");
    }
}

struct fanout_answer fanout_answer(const struct fanout_question *question, unsigned i)
{
    const struct part *part = &question->parts[i];

    return (struct fanout_answer){.backend = question->fanout->backends[i],
        .text = part->answered ? part->answer : NULL,
        .why = part->answered ? NULL
               : part->over   ? part->why
                              : "not yet",
        .repeated = part->repeated};
}

/* As snprintf() into what is left of the text after `used` bytes. */
static int add_line(char *text, size_t n, int used, const char *first, const char *second, const char *third)
{
    size_t at = (size_t)used < n ? (size_t)used : n;

    return used + snprintf(n == 0 ? NULL : text + at, n - at, "%s%s%s\n", first, second, third);
}

int fanout_merge(const struct fanout_question *question, char *text, size_t n)
{
    char sum[32];
    unsigned answered = 0;
    int used = 0;

    for (unsigned i = 0; i < question->fanout->n; i++) {
        struct fanout_answer answer = fanout_answer(question, i);

        answered += answer.text != NULL;
        used = add_line(text, n, used, answer.backend,
            answer.text != NULL ? ": " : " is missing: ", answer.text != NULL ? answer.text : answer.why);
    }
    snprintf(sum, sizeof sum, "%u of %u", answered, question->fanout->n);
    return add_line(text, n, used, sum, "", "");
}

void fanout_end(struct fanout_question *question)
{
    if (question == NULL)
        return;
    fanout_deadline(question);
    free(question);
}
