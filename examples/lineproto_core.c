/* lineproto_core.c - see lineproto_core.h; docs/guide.md, "Your own protocol", goes through it. */
#include "examples/lineproto_core.h"

#include <stdio.h>
#include <string.h>

struct line_link {                         /* all zero when an attempt begins */
    int (*then)(struct protocol_link *pl); /* what follows on +OK to our last line; NULL: no answer is awaited */
    char in[LINE_MOST];
    size_t n;
};

ssize_t line_complete(char *bytes, size_t n)
{
    char *end = memchr(bytes, '\n', n);

    if (end == NULL)
        return n < LINE_MOST ? 0 : LINKPOOL_EINVAL;
    end[end > bytes && end[-1] == '\r' ? -1 : 0] = '\0';
    return end - bytes + 1;
}

/* A line is said when no other is on the way: a socket that does not take it at once is as good as lost. */
static int say(struct protocol_link *pl, const char *word, const char *text, int (*then)(struct protocol_link *pl))
{
    char line[LINE_MOST];
    int n = snprintf(line, sizeof line, "%s%s\r\n", word, text);

    if (n >= LINE_MOST || strpbrk(text, "\r\n") != NULL) /* else a password could give commands */
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "user and password are not of one line each");
    ((struct line_link *)pl->state)->then = then;
    ssize_t written = protocol_write(pl, &(struct iovec){line, (size_t)n}, 1);
    if (written == LINKPOOL_ELOST)
        return LINKPOOL_ELOST; /* the link is gone, and its state with it */
    return written == n ? 0 : protocol_fail(pl, LINK_TIMED_OUT, "the server reads nothing");
}

static int say_password(struct protocol_link *pl)
{
    return say(pl, "PASS ", ((const struct line_login *)pl->protocol->config)->password, protocol_ready);
}

static int on_start(struct protocol_link *pl)
{
    return say(pl, "USER ", ((const struct line_login *)pl->protocol->config)->user, say_password);
}

static int on_line(struct protocol_link *pl, bool is_one)
{
    struct line_link *self = pl->state;
    int (*then)(struct protocol_link * pl) = self->then;

    self->then = NULL;
    self->n = 0;
    if (!is_one)
        return protocol_fail(pl, LINK_PROTOCOL_ERROR, "a line that is too long, or more than one");
    if (strncmp(self->in, "+OK", 3) != 0)
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, self->in); /* in the server's words */
    return then(pl);
}

/* Bytes that come when no answer is awaited are not ours to read. */
static int on_input(struct protocol_link *pl, unsigned events)
{
    struct line_link *self = pl->state;
    ssize_t got = 0;

    (void)events; /* nothing of ours waits for room */
    while (self->then != NULL && (got = protocol_read(pl, self->in + self->n, LINE_MOST - self->n)) > 0) {
        ssize_t taken = line_complete(self->in, self->n += (size_t)got);
        if (taken != 0 && on_line(pl, taken == (ssize_t)self->n) != 0)
            return LINKPOOL_ELOST; /* the link is gone, and `self` with it */
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_idle_input(struct protocol_link *pl)
{
    return ((struct line_link *)pl->state)->then != NULL && on_input(pl, LINKPOOL_READ) == 0;
}

static int on_released(struct protocol_link *pl)
{
    return say(pl, "RSET", "", protocol_ready) == 0 ? PROTOCOL_RESETTING : PROTOCOL_UNCLEAN;
}

static int on_ping(struct protocol_link *pl)
{
    return say(pl, "PING", "", protocol_pong);
}

struct protocol line_protocol(const struct line_login *login)
{
    struct protocol protocol = {.size = sizeof protocol, .name = "line", .link_size = sizeof(struct line_link)};

    protocol.config = login;
    protocol.start = on_start;
    protocol.input = on_input;
    protocol.idle_input = on_idle_input;
    protocol.released = on_released;
    protocol.ping = on_ping;
    return protocol;
}
