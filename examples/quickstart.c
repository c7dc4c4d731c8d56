/* quickstart.c - one question to one server over a pooled link: quickstart ADDR [LINE] */
#include <ev.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <string.h>

static const char *question = "PING";
static int exit_status = 1;

static void on_readable(struct channel *channel)
{
    char answer[4096];
    ssize_t n = channel_read(channel, answer, sizeof answer);

    if (n == LINKPOOL_EAGAIN)
        return; /* called again when there is more */
    if (n > 0)
        exit_status = fwrite(answer, 1, (size_t)n, stdout) != (size_t)n;
    pool_release(channel_lease(channel), n > 0 ? POOL_REUSE : POOL_DISCARD);
    ev_break(EV_DEFAULT, EVBREAK_ALL);
}

static const struct channel_events events = {.readable = on_readable};

static void on_leased(struct pool_lease *lease)
{
    struct iovec parts[] = {{(void *)question, strlen(question)}, {"\r\n", 2}};
    char why[256];

    if (lease->status == POOL_READY) {
        channel_watch(lease->channel, &events, LINKPOOL_READ);
        channel_writev(lease->channel, parts, 2);
    } else {
        pool_explain(lease, why, sizeof why);
        fprintf(stderr, "quickstart: %s\n", why);
        ev_break(EV_DEFAULT, EVBREAK_ALL);
    }
}

int main(int argc, char **argv)
{
    struct pool_lease lease = {.done = on_leased};
    struct pool *pool = pool_new(EV_DEFAULT, NULL);
    int status;

    if (argc > 2)
        question = argv[2];
    if (pool == NULL)
        return perror("quickstart"), 1;
    status = pool_acquire(pool, argc > 1 ? argv[1] : "127.0.0.1:6379", &lease);
    if (status < 0)
        fprintf(stderr, "quickstart: %s\n", linkpool_strerror(status));
    else
        ev_run(EV_DEFAULT, 0); /* the first use opens a link: POOL_PENDING, and on_leased() is told */
    pool_free(pool);
    return exit_status;
}
