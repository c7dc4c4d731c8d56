/* status.c - who looks at the status page, and when it is written.
 *
 * A look asks all workers for a report; when the last has come the page goes to all who had connected before they were
 * asked, later ones get the next. Each look is over within five seconds, and at most 32 go on at once. */
#include "examples/lbproxy/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/common/acceptor.h"
#include "examples/common/loop.h"
#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/page.h"
#include "examples/lbproxy/worker.h"

enum {
    MAX_LOOKS = 32
};
static const double look_timeout = 5; /* seconds */

struct look {
    struct status *status;
    struct look *prev, *next;
    struct ev_io io;
    ev_timer limit;
    bool asked; /* its round is under way */
    char *text; /* the page; NULL: not yet */
    size_t size, sent;
};

struct status {
    struct crew *crew;
    struct acceptor acceptor;
    struct look *looks;
    unsigned n_looks;
    unsigned *rounds; /* a worker: the report that answers the round under way */
    bool asking;
};

static void end_look(struct look *look)
{
    struct status *status = look->status;

    ev_io_stop(status->crew->loop, &look->io);
    ev_timer_stop(status->crew->loop, &look->limit);
    close(look->io.fd);
    DL_DELETE(status->looks, look);
    free(look->text);
    free(look);
    status->n_looks--;
    acceptor_resume(&status->acceptor);
}

static void on_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    end_look(timer->data);
}

/* ---- rounds ---- */

static bool has_reported(const struct status *status, unsigned i)
{
    struct worker *worker = status->crew->workers[i];
    bool reported;

    pthread_mutex_lock(&worker->lock);
    reported = worker->report.round >= status->rounds[i];
    pthread_mutex_unlock(&worker->lock);
    return reported || atomic_load(&worker->over);
}

static void ask(struct status *status)
{
    struct look *look;

    status->asking = true;
    DL_FOREACH (status->looks, look)
        look->asked = true;
    for (unsigned i = 0; i < status->crew->options->threads; i++) {
        struct worker *worker = status->crew->workers[i];

        pthread_mutex_lock(&worker->lock);
        status->rounds[i] = worker->report.round + 1;
        pthread_mutex_unlock(&worker->lock);
        worker_order(worker, WORKER_REPORT);
    }
}

/* ---- sending ---- */

/* A look that has said something gets its page too: the rest is read until it hangs up, since closing over unread
 * bytes would reset what is still on its way. */
static void wait_for_hang_up(struct look *look)
{
    char sink[4096];
    ssize_t n;

    do
        n = recv(look->io.fd, sink, sizeof sink, 0);
    while (n > 0);
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        end_look(look);
}

static void send_page(struct look *look)
{
    ssize_t n = send(look->io.fd, look->text + look->sent, look->size - look->sent, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end_look(look);
        return;
    }
    look->sent += n > 0 ? (size_t)n : 0;
    if (look->sent == look->size)
        shutdown(look->io.fd, SHUT_WR);
    loop_want(look->status->crew->loop, &look->io, look->sent == look->size ? EV_READ : EV_WRITE);
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct look *look = io->data;

    (void)loop;
    if (events & EV_WRITE)
        send_page(look);
    else
        wait_for_hang_up(look);
}

static void answer(struct status *status)
{
    struct look *look, *next;
    size_t size = 0;
    char *text = page_write(status->crew, &size);

    DL_FOREACH_SAFE (status->looks, look, next) {
        if (!look->asked || look->text != NULL)
            continue;
        look->text = text == NULL ? NULL : strndup(text, size);
        look->size = size;
        if (look->text == NULL)
            end_look(look);
        else
            send_page(look);
    }
    free(text);
}

static bool is_anyone_waiting(const struct status *status)
{
    const struct look *look;

    DL_FOREACH (status->looks, look)
        if (look->text == NULL)
            return true;
    return false;
}

void status_on_report(struct status *status)
{
    if (!status->asking)
        return;
    for (unsigned i = 0; i < status->crew->options->threads; i++)
        if (!has_reported(status, i))
            return;
    status->asking = false;
    answer(status);
    if (is_anyone_waiting(status))
        ask(status);
}

/* ---- coming and going ---- */

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct status *status = acceptor->data;
    struct look *look = calloc(1, sizeof *look);

    if (look == NULL) {
        close(fd);
        return;
    }
    look->status = status;
    ev_io_init(&look->io, on_ready, fd, 0);
    look->io.data = look;
    ev_timer_init(&look->limit, on_limit, look_timeout, 0);
    look->limit.data = look;
    ev_timer_start(status->crew->loop, &look->limit);
    DL_APPEND(status->looks, look);
    if (++status->n_looks >= MAX_LOOKS)
        acceptor_hold(acceptor);
    if (!status->asking)
        ask(status);
}

struct status *status_start(struct crew *crew, int fd)
{
    struct status *status = calloc(1, sizeof *status);

    if (status == NULL)
        return NULL;
    status->rounds = calloc(crew->options->threads, sizeof *status->rounds);
    if (status->rounds == NULL) {
        free(status);
        return NULL;
    }
    status->crew = crew;
    status->acceptor.accepted = on_accepted;
    status->acceptor.data = status;
    acceptor_start(&status->acceptor, crew->loop, fd);
    return status;
}

void status_stop(struct status *status)
{
    if (status == NULL)
        return;
    acceptor_stop(&status->acceptor);
    while (status->looks != NULL)
        end_look(status->looks);
    free(status->rounds);
    free(status);
}
