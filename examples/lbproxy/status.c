/* status.c - who looks at the pages, and when they are written.
 *
 * libmicrohttpd speaks HTTP, on our loop: its epoll descriptor is watched, and it says when it wants to be run next.
 * Clients are taken from our acceptor, since it would try again and again when descriptors run out.
 *
 * A look asks all workers for a report, and its connection is suspended. When the last report has come, all are resumed
 * that looked before the workers were asked; later ones get the next round. Who has waited for five seconds is told
 * that a thread does not answer. */
#include "examples/lbproxy/status.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/common/acceptor.h"
#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/metrics.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/page.h"
#include "examples/lbproxy/report.h"
#include "examples/lbproxy/worker.h"

enum {
    MAX_CONNECTIONS = 32,
    IDLE_TIMEOUT = 5 /* seconds in which a connection must move a byte */
};
static const double look_timeout = 5; /* seconds for the workers */

struct status {
    struct crew *crew;
    struct acceptor acceptor;
    struct MHD_Daemon *daemon;
    struct ev_io io;    /* its epoll descriptor */
    ev_timer timer;     /* it wants to be run */
    struct look *looks; /* those that wait for reports */
    unsigned *rounds;   /* a worker: the report that answers the round under way */
    bool asking;
};

/* What is told at a path. @return its HTTP status. */
struct place {
    const char *path, *type;
    unsigned (*write)(FILE *page, const struct crew *crew, const struct report *sum);
};

/* One request for a page, until it is answered. */
struct look {
    struct status *status;
    struct look *prev, *next; /* among those that wait */
    struct MHD_Connection *connection;
    const struct place *place;
    ev_timer limit;
    bool asked; /* its round is under way */
    bool late;  /* it has waited too long */
};

/* ---- pages ---- */

static unsigned write_page(FILE *page, const struct crew *crew, const struct report *sum)
{
    page_write(page, crew, sum);
    return MHD_HTTP_OK;
}

static unsigned write_metrics(FILE *page, const struct crew *crew, const struct report *sum)
{
    metrics_write(page, crew, sum);
    return MHD_HTTP_OK;
}

static unsigned write_health(FILE *page, const struct crew *crew, const struct report *sum)
{
    unsigned up = 0;

    for (unsigned i = 0; i < crew->options->n_backends; i++)
        up += !report_is_down(sum->hosts[i].state);
    fputs(crew->draining ? "draining\n" : up == 0 ? "no backend\n" : "ok\n", page);
    return crew->draining || up == 0 ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
}

static const char plain[] = "text/plain; charset=utf-8";

static const struct place places[] = {
    {"/", plain, write_page},
    {"/metrics", "text/plain; version=0.0.4", write_metrics},
    {"/healthz", plain, write_health},
};

static const struct place *find_place(const char *path)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(path, places[i].path) == 0)
            return &places[i];
    return NULL;
}

/* ---- answers ---- */

static enum MHD_Result answer(
    struct MHD_Connection *connection, unsigned code, const char *type, struct MHD_Response *response)
{
    enum MHD_Result queued = MHD_NO;

    if (response == NULL)
        return MHD_NO; /* out of memory: the connection is closed */
    if (MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
        (code != MHD_HTTP_METHOD_NOT_ALLOWED || MHD_add_response_header(response, "Allow", "GET, HEAD") == MHD_YES))
        queued = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result answer_words(struct MHD_Connection *connection, unsigned code, const char *words)
{
    return answer(
        connection, code, plain, MHD_create_response_from_buffer(strlen(words), (void *)words, MHD_RESPMEM_PERSISTENT));
}

/* @return the text, the caller's, or NULL: out of memory. */
static char *write_place(const struct place *place, const struct crew *crew, size_t *size, unsigned *code)
{
    struct report sum = {0};
    char *text = NULL;
    FILE *page = open_memstream(&text, size);

    if (page == NULL)
        return NULL;
    *code = report_sum(crew, &sum) ? place->write(page, crew, &sum) : 0;
    report_clear(&sum);
    if (fclose(page) == 0 && *code != 0)
        return text;
    free(text);
    return NULL;
}

static enum MHD_Result answer_look(const struct look *look)
{
    struct MHD_Response *response;
    unsigned code;
    size_t size;
    char *text;

    if (look->late)
        return answer_words(look->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "a thread does not answer\n");
    text = write_place(look->place, look->status->crew, &size, &code);
    if (text == NULL)
        return MHD_NO;
    response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(text);
    return answer(look->connection, code, look->place->type, response);
}

/* ---- running the daemon ---- */

static bool has_room(struct acceptor *acceptor)
{
    const struct status *status = acceptor->data;

    return MHD_get_daemon_info(status->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections < MAX_CONNECTIONS;
}

static void run(struct status *status)
{
    struct ev_loop *loop = status->crew->loop;
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(status->daemon);
    ev_timer_stop(loop, &status->timer);
    if (MHD_get_timeout(status->daemon, &ms) == MHD_YES) {
        ev_timer_set(&status->timer, (double)ms / 1000, 0);
        ev_timer_start(loop, &status->timer);
    }
    if (status->acceptor.held && has_room(&status->acceptor))
        acceptor_resume(&status->acceptor);
}

static void on_daemon_ready(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop, (void)events;
    run(io->data);
}

static void on_daemon_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    run(timer->data);
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct status *status = acceptor->data;
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof peer;

    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
        close(fd); /* it has gone already */
    else
        MHD_add_connection(status->daemon, fd, (struct sockaddr *)&peer, size);
    run(status);
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

/* run() must follow, and then it is answered. */
static void end_wait(struct look *look)
{
    DL_DELETE(look->status->looks, look);
    ev_timer_stop(look->status->crew->loop, &look->limit);
    MHD_resume_connection(look->connection);
}

static void on_limit(struct ev_loop *loop, ev_timer *limit, int events)
{
    struct look *look = limit->data;
    struct status *status = look->status;

    (void)loop, (void)events;
    look->late = true;
    end_wait(look);
    run(status);
}

void status_on_report(struct status *status)
{
    struct look *look, *next;

    if (!status->asking)
        return;
    for (unsigned i = 0; i < status->crew->options->threads; i++)
        if (!has_reported(status, i))
            return;
    status->asking = false;
    DL_FOREACH_SAFE (status->looks, look, next)
        if (look->asked)
            end_wait(look);
    if (status->looks != NULL)
        ask(status);
    run(status);
}

/* ---- looks ---- */

static enum MHD_Result start_look(
    struct status *status, struct MHD_Connection *connection, const struct place *place, void **kept)
{
    struct look *look = calloc(1, sizeof *look);

    if (look == NULL)
        return MHD_NO;
    *kept = look;
    look->status = status;
    look->connection = connection;
    look->place = place;
    ev_timer_init(&look->limit, on_limit, look_timeout, 0);
    look->limit.data = look;
    ev_timer_start(status->crew->loop, &look->limit);
    DL_APPEND(status->looks, look);
    MHD_suspend_connection(connection);
    if (!status->asking)
        ask(status);
    return MHD_YES;
}

/* Called when a request's head has come, and again when its connection is resumed. Who is answered here, without being
 * waited for any further, is closed: a connection is good for one look. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *path, const char *method,
    const char *version, const char *upload, size_t *upload_n, void **kept)
{
    const struct place *place = find_place(path);

    (void)version, (void)upload, (void)upload_n;
    if (*kept != NULL)
        return answer_look(*kept);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone are answered\n");
    if (place == NULL)
        return answer_words(connection, MHD_HTTP_NOT_FOUND, "there are /, /metrics and /healthz\n");
    return start_look(data, connection, place, kept);
}

static void on_request_over(
    void *data, struct MHD_Connection *connection, void **kept, enum MHD_RequestTerminationCode how)
{
    (void)data, (void)connection, (void)how;
    free(*kept);
    *kept = NULL;
}

/* ---- coming and going ---- */

/* Nothing it has to say is for the standard error output. */
static void ignore_words(void *data, const char *format, va_list values)
{
    (void)data, (void)format, (void)values;
}

static struct MHD_Daemon *start_daemon(struct status *status)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
        on_request, status, MHD_OPTION_EXTERNAL_LOGGER, ignore_words, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        on_request_over, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_TIMEOUT, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static void watch(struct status *status, int fd)
{
    struct ev_loop *loop = status->crew->loop;

    ev_io_init(
        &status->io, on_daemon_ready, MHD_get_daemon_info(status->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EV_READ);
    ev_timer_init(&status->timer, on_daemon_due, 0, 0);
    status->io.data = status->timer.data = status;
    ev_io_start(loop, &status->io);
    status->acceptor.accepted = on_accepted;
    status->acceptor.may = has_room;
    status->acceptor.data = status;
    acceptor_start(&status->acceptor, loop, fd);
}

struct status *status_start(struct crew *crew, int fd)
{
    struct status *status = calloc(1, sizeof *status);

    if (status == NULL)
        goto fail;
    status->crew = crew;
    status->rounds = calloc(crew->options->threads, sizeof *status->rounds);
    if (status->rounds == NULL)
        goto fail_status;
    status->daemon = start_daemon(status);
    if (status->daemon == NULL)
        goto fail_rounds;
    watch(status, fd);
    return status;
fail_rounds:
    free(status->rounds);
fail_status:
    free(status);
fail:
    close(fd);
    return NULL;
}

void status_stop(struct status *status)
{
    if (status == NULL)
        return;
    acceptor_stop(&status->acceptor);
    while (status->looks != NULL)
        end_wait(status->looks);
    ev_io_stop(status->crew->loop, &status->io);
    ev_timer_stop(status->crew->loop, &status->timer);
    MHD_stop_daemon(status->daemon);
    free(status->rounds);
    free(status);
}
