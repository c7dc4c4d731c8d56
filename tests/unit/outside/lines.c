/* lines.c - see lines.h. */
#include "lines.h"

#include <string.h>

enum {
    OUT =
        2 * LINES_CHANNELS * LINES_LONGEST, /* bytes accepted and not written: of each channel, and as much given up */
    DUE = 2 * LINES_CHANNELS,               /* the same, of answers */
    LOGIN = 2                               /* answers until READY: to USER and to PASS */
};

struct line_link {
    unsigned answers; /* while they are those to the login */
    size_t n_in, n_out, n_due;
    uint64_t written;                  /* bytes so far */
    struct protocol_channel *due[DUE]; /* whose answer comes next; NULL: nobody's any more, or that to PING */
    bool is_ping[DUE];
    char in[LINES_LONGEST], out[OUT];
};

struct line_channel {
    struct line_link *link; /* NULL: it has not asked yet */
    uint64_t begins;        /* where its first request is in all that is written */
    bool is_due;
};

static const struct lines_login *login_of(const struct protocol_link *pl)
{
    return pl->protocol->config;
}

/* ---- what is said ---- */

static int flush(struct protocol_link *pl)
{
    struct line_link *self = pl->state;
    ssize_t n = self->n_out > 0 ? protocol_write(pl, &(struct iovec){self->out, self->n_out}, 1) : 0;

    if (n <= 0)
        return n == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0; /* input() is called when there is room again */
    self->n_out -= (size_t)n;
    self->written += (size_t)n;
    memmove(self->out, self->out + n, self->n_out);
    return 0;
}

/* Two lines in one would give everybody the answer of somebody else. */
static int say(struct protocol_link *pl, const char *word, const char *text, size_t n)
{
    struct line_link *self = pl->state;
    size_t n_word = strlen(word);

    if (n_word + n + 2 > LINES_LONGEST || memchr(text, '\n', n) != NULL || memchr(text, '\r', n) != NULL)
        return LINKPOOL_EINVAL;
    if (self->n_out + LINES_LONGEST > OUT)
        return protocol_fail(pl, LINK_TIMED_OUT, "the server reads no more");
    memcpy(self->out + self->n_out, word, n_word);
    memcpy(self->out + self->n_out + n_word, text, n);
    memcpy(self->out + self->n_out + n_word + n, "\r\n", 2);
    self->n_out += n_word + n + 2;
    return flush(pl);
}

static int log_in(struct protocol_link *pl, const char *word, const char *text)
{
    int error = say(pl, word, text, strlen(text));

    return error == LINKPOOL_EINVAL ? protocol_fail(pl, LINK_HANDSHAKE_FAILED, "no login of a line each") : error;
}

/* Its answer is awaited first: say() may end the link. */
static int ask(struct protocol_link *pl, struct protocol_channel *pc, const char *text, size_t n)
{
    struct line_link *self = pl->state;
    int error;

    if (self->n_due == DUE)
        return protocol_fail(pl, LINK_TIMED_OUT, "the server answers no more");
    self->is_ping[self->n_due] = pc == NULL;
    self->due[self->n_due++] = pc;
    error = say(pl, "", text, n);
    if (error == LINKPOOL_EINVAL)
        self->n_due--;
    return error;
}

/* ---- what comes ---- */

static int on_login_answer(struct protocol_link *pl, const char *line)
{
    if (*line != '+')
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, line); /* in the server's words */
    if (++((struct line_link *)pl->state)->answers < LOGIN)
        return log_in(pl, "PASS ", login_of(pl)->password);
    return protocol_ready(pl);
}

static int on_answer(struct protocol_link *pl, const char *line, size_t n)
{
    struct line_link *self = pl->state;
    struct protocol_channel *pc = self->due[0];
    bool is_ping = self->is_ping[0];

    if (self->n_due == 0)
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "an answer to nothing");
    if (*line != '+' && *line != '-')
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "neither +OK nor -ERR");
    memmove(self->due, self->due + 1, --self->n_due * sizeof *self->due);
    memmove(self->is_ping, self->is_ping + 1, self->n_due * sizeof *self->is_ping);
    if (pc == NULL)
        return is_ping ? protocol_pong(pl) : 0;
    ((struct line_channel *)pc->state)->is_due = false;
    return *line == '+' ? protocol_deliver(pc, line, n) : protocol_deliver_error(pc, LINES_REFUSED, line, n);
}

/* All whole lines that are there; the rest is kept. */
static int take_lines(struct protocol_link *pl)
{
    struct line_link *self = pl->state;
    char *line = self->in, *end;

    for (; (end = memchr(line, '\n', self->n_in)) != NULL; line = end + 1) {
        size_t n = (size_t)(end - line) - (end > line && end[-1] == '\r');
        line[n] = '\0';
        self->n_in -= (size_t)(end + 1 - line);
        if (self->answers < LOGIN ? on_login_answer(pl, line) : on_answer(pl, line, n))
            return LINKPOOL_ELOST; /* the link is gone, and `self` with it */
    }
    memmove(self->in, line, self->n_in);
    return self->n_in < LINES_LONGEST ? 0 : protocol_fail(pl, LINK_PROTOCOL_ERROR, "a line that is too long");
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    struct line_link *self = pl->state;
    ssize_t n;

    if ((events & LINKPOOL_WRITE) && flush(pl) != 0)
        return LINKPOOL_ELOST;
    while ((n = protocol_read(pl, self->in + self->n_in, LINES_LONGEST - self->n_in)) > 0) {
        self->n_in += (size_t)n;
        if (take_lines(pl) != 0)
            return LINKPOOL_ELOST;
    }
    return n == LINKPOOL_EAGAIN ? 0 : LINKPOOL_ELOST;
}

/* ---- the other hooks ---- */

static int on_start(struct protocol_link *pl)
{
    return log_in(pl, "USER ", login_of(pl)->user);
}

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    struct line_link *self = pl->state;
    struct line_channel *channel = pc->state;
    struct line_channel before = *channel;

    if (channel->is_due)
        return LINKPOOL_ESTATE;
    channel->is_due = true;
    if (channel->link == NULL)
        *channel = (struct line_channel){.link = self, .begins = self->written + self->n_out, .is_due = true};
    int error = ask(pl, pc, bytes, n);
    if (error == LINKPOOL_EINVAL)
        *channel = before;
    return error;
}

static void on_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    struct line_link *self = pl->state;

    (void)cancelled; /* an answer may come that nobody waited for */
    for (size_t i = 0; i < self->n_due; i++)
        if (self->due[i] == pc)
            self->due[i] = NULL; /* it is swallowed, in its turn */
}

static bool is_unsent(const struct protocol_channel *pc)
{
    const struct line_channel *channel = pc->state;

    return channel->link == NULL || channel->begins >= channel->link->written;
}

static int on_ping(struct protocol_link *pl)
{
    return ask(pl, NULL, "PING", 4);
}

struct protocol lines_protocol(const struct lines_login *login)
{
    return (struct protocol){.size = sizeof(struct protocol),
        .name = "lines",
        .flags = PROTOCOL_SHARED,
        .max_channels = LINES_CHANNELS,
        .link_size = sizeof(struct line_link),
        .channel_size = sizeof(struct line_channel),
        .config = login,
        .start = on_start,
        .input = on_input,
        .send = on_send,
        .close = on_close,
        .unsent = is_unsent,
        .ping = on_ping};
}
