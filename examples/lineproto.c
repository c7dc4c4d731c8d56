/* lineproto.c - says lines to a server of lineproto_core.h's protocol: lineproto ADDR USER PASSWORD LINE... */
#include <ev.h>
#include <linkpool/linkpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lineproto_core.h"

static struct pool_host *host;
static char **line, answer[LINE_MOST]; /* line: that is said; a NULL ends them */
static size_t n_answer;

static void fail(const char *what)
{
    char how[512];

    pool_host_explain(host, how, sizeof how); /* a login that was refused: in the server's words */
    fprintf(stderr, "lineproto: %s: %s\n", what, how);
    exit(1);
}

/* Each line is a lease of its own: between two the link is reset, and others could have it. */
static void next(struct pool_lease *lease)
{
    if (*line == NULL)
        ev_break(EV_DEFAULT, EVBREAK_ALL);
    else if (pool_acquire_host(host, lease) < 0) /* never READY at once: the link is new, or being reset */
        fail(linkpool_strerror(lease->status));
}

static void on_readable(struct channel *channel)
{
    struct pool_lease *lease = channel_lease(channel);
    ssize_t got = channel_read(channel, answer + n_answer, sizeof answer - n_answer);

    if (got <= 0 && got != LINKPOOL_EAGAIN)
        fail(got == 0 ? "closed without an answer" : linkpool_strerror((int)got));
    ssize_t taken = line_complete(answer, n_answer += got > 0 ? (size_t)got : 0);
    if (taken != 0 && taken != (ssize_t)n_answer)
        fail("a line that is too long, or more than one");
    if (taken == 0)
        return; /* called again when there is more */
    puts(answer);
    line++;
    pool_release(lease, POOL_REUSE);
    next(lease);
}

static void on_leased(struct pool_lease *lease)
{
    static const struct channel_events events = {.readable = on_readable};
    struct iovec parts[] = {{*line, strlen(*line)}, {(void *)"\r\n", 2}};

    if (lease->status < 0)
        fail(linkpool_strerror(lease->status));
    n_answer = 0;
    channel_watch(lease->channel, &events, LINKPOOL_READ);
    if (channel_writev(lease->channel, parts, 2) != (ssize_t)(parts[0].iov_len + parts[1].iov_len))
        fail("the line was not taken");
}

int main(int argc, char **argv)
{
    struct pool_lease lease = {.done = on_leased};

    if (argc < 5)
        return fputs("usage: lineproto ADDR USER PASSWORD LINE...\n", stderr), 2;
    struct protocol protocol = line_protocol(&(struct line_login){argv[2], argv[3]});
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = argv[1], .protocol = &protocol};
    struct pool *pool = pool_new(EV_DEFAULT, NULL);
    if (pool == NULL || (host = pool_host_for(pool, &endpoint, NULL)) == NULL)
        return perror("lineproto"), 1;
    line = argv + 4;
    next(&lease);
    ev_run(EV_DEFAULT, 0);
    return pool_free(pool), 0;
}
