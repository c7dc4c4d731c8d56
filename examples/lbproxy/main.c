/* main.c - lbproxy: a load-balancing proxy on linkpool.
 *
 * The control thread starts the workers, takes signals and serves the status page; clients are the workers' alone. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/status.h"
#include "examples/lbproxy/worker.h"

static void order_all(struct crew *crew, unsigned orders)
{
    for (unsigned i = 0; i < crew->options->threads; i++)
        worker_order(crew->workers[i], orders);
}

/* The first signal drains; SIGINT while draining ends at once. */
static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct crew *crew = watcher->data;

    (void)loop, (void)events;
    if (!crew->draining) {
        crew->draining = true;
        order_all(crew, WORKER_DRAIN);
    } else if (watcher->signum == SIGINT) {
        crew->cut = true;
        order_all(crew, WORKER_QUIT);
    }
}

static void on_reopen(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop, (void)events;
    order_all(watcher->data, WORKER_REOPEN);
}

static void on_wake(struct ev_loop *loop, ev_async *wake, int events)
{
    struct crew *crew = wake->data;

    (void)events;
    if (crew->status != NULL)
        status_on_report(crew->status);
    for (unsigned i = 0; i < crew->options->threads; i++)
        if (!atomic_load(&crew->workers[i]->over))
            return;
    ev_break(loop, EVBREAK_ALL);
}

static void watch(struct crew *crew)
{
    ev_async_init(&crew->wake, on_wake);
    ev_signal_init(&crew->term, on_signal, SIGTERM);
    ev_signal_init(&crew->interrupt, on_signal, SIGINT);
    ev_signal_init(&crew->reopen, on_reopen, SIGUSR1);
    crew->wake.data = crew->term.data = crew->interrupt.data = crew->reopen.data = crew;
    ev_async_start(crew->loop, &crew->wake);
    ev_signal_start(crew->loop, &crew->term);
    ev_signal_start(crew->loop, &crew->interrupt);
    ev_signal_start(crew->loop, &crew->reopen);
}

/* Threads share a tcp port by SO_REUSEPORT, each with a line of its own in the kernel, and a unix socket by its
 * descriptor. */
static int listen_again(int first, const char *text)
{
    int fd;

    if (strncmp(text, "unix:", 5) != 0)
        return socket_listen("--listen", text, true);
    fd = dup(first);
    if (fd < 0)
        die("--listen: %s: %s", text, strerror(errno));
    return fd;
}

/* All sockets stand before the first worker runs, so that no client meets half a proxy. */
static void start_workers(struct crew *crew)
{
    const struct options *options = crew->options;
    int *fds = calloc(options->threads, sizeof *fds);
    char text[SOCKET_TEXT];

    crew->workers = calloc(options->threads, sizeof *crew->workers);
    if (fds == NULL || crew->workers == NULL)
        die("out of memory");
    fds[0] = socket_listen("--listen", options->listen, options->threads > 1);
    socket_name(fds[0], text);
    for (unsigned i = 1; i < options->threads; i++)
        fds[i] = listen_again(fds[0], text);
    socket_announce("listening", fds[0]);
    for (unsigned i = 0; i < options->threads; i++)
        crew->workers[i] = worker_start(options, i, fds[i], crew->loop, &crew->wake);
    free(fds);
}

static void start_status(struct crew *crew)
{
    int fd;

    if (crew->options->status == NULL)
        return;
    fd = socket_listen("--status", crew->options->status, false);
    socket_announce("status", fd);
    crew->status = status_start(crew, fd);
    if (crew->status == NULL)
        die("--status: out of memory");
}

static void block_signals(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(how, &set, NULL);
}

static void end_all(struct crew *crew)
{
    status_stop(crew->status);
    for (unsigned i = 0; i < crew->options->threads; i++)
        worker_join(crew->workers[i]);
    free(crew->workers);
    socket_remove_file(crew->options->listen);
    if (crew->options->status != NULL)
        socket_remove_file(crew->options->status);
    ev_loop_destroy(crew->loop);
}

int main(int argc, char **argv)
{
    static struct options options;
    struct crew crew = {.options = &options};

    program_name = argv[0] = "lbproxy";
    options_read(&options, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log that may not grow loses lines, no more */
    crew.loop = ev_default_loop(0);
    if (crew.loop == NULL)
        die("no event loop");
    crew.started = ev_now(crew.loop);
    watch(&crew);
    block_signals(SIG_BLOCK); /* the workers inherit it: signals are for this thread */
    start_workers(&crew);
    block_signals(SIG_UNBLOCK);
    start_status(&crew);
    ev_run(crew.loop, 0);
    end_all(&crew);
    return crew.cut ? 130 : 0;
}
