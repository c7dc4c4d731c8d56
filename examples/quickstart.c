/* quickstart.c - one question to one server over a pooled link: quickstart [ADDR [LINE]] */
#include <ev.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <string.h>

static const char *address = "127.0.0.1:6379";
static const char *question = "PING";
static int exit_status;

/* Gives the link back, where there is one: to be used again, or closed when something was wrong. */
static void finish(struct pool_lease *lease, const char *fault)
{
    if (fault != NULL) {
        fprintf(stderr, "quickstart: %s: %s\n", address, fault);
        exit_status = 1;
    }
    pool_release(lease, fault == NULL ? POOL_REUSE : POOL_DISCARD);
    ev_break(EV_DEFAULT, EVBREAK_ALL);
}

static void on_readable(struct channel *channel)
{
    char answer[4096];
    ssize_t n = channel_read(channel, answer, sizeof answer);

    if (n == LINKPOOL_EAGAIN)
        return; /* called again when there is more */
    if (n > 0)
        printf("%.*s", (int)n, answer);
    finish(channel_lease(channel), n > 0 ? NULL : n == 0 ? "closed without an answer" : linkpool_strerror((int)n));
}

static const struct channel_events events = {.readable = on_readable};

static void on_leased(struct pool_lease *lease)
{
    struct iovec parts[] = {{(void *)question, strlen(question)}, {"\r\n", 2}};
    char why[256];

    if (lease->status < 0) {
        pool_explain(lease, why, sizeof why);
        finish(lease, why);
        return;
    }
    channel_watch(lease->channel, &events, LINKPOOL_READ);
    if (channel_writev(lease->channel, parts, 2) < 0)
        finish(lease, link_reason_text(lease->reason));
}

int main(int argc, char **argv)
{
    struct pool_lease lease = {.done = on_leased};
    struct pool *pool = pool_new(EV_DEFAULT, NULL);
    int status;

    address = argc > 1 ? argv[1] : address;
    question = argc > 2 ? argv[2] : question;
    if (pool == NULL)
        return perror("quickstart"), 1;
    status = pool_acquire(pool, address, &lease); /* the first use opens a link, and on_leased() is told */
    if (status < 0)
        finish(&lease, linkpool_strerror(status));
    else
        ev_run(EV_DEFAULT, 0);
    pool_free(pool);
    return exit_status;
}
