/* clocks.c - one list and one timer a clock. A timer is set for the first in its list and, since all after it are due
 * later, never again before it rings. */
#include "examples/lbproxy/clocks.h"

#include <linkpool/pool.h>
#include <utlist.h>

#include "examples/lbproxy/client.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

static void ring_in(struct ev_loop *loop, ev_timer *timer, double seconds)
{
    ev_timer_set(timer, seconds, 0);
    ev_timer_start(loop, timer);
}

static void on_ring(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct worker *worker = timer->data;
    enum clock_of which = CLOCK_NONE;
    struct clock *clock;
    double now = pool_now(worker->pool);

    (void)events;
    while (&worker->clocks[which].timer != timer)
        which++;
    clock = &worker->clocks[which];
    /* whoever is told either goes or runs another clock */
    while (clock->clients != NULL && clock->clients->clock_started + clock->timeout <= now)
        worker->options->mode->expired(clock->clients, which);
    ev_timer_stop(loop, timer); /* one that was told may have started it, for itself */
    if (clock->clients != NULL)
        ring_in(loop, timer, clock->clients->clock_started + clock->timeout - now);
}

void clocks_init(struct worker *worker, const struct options *options)
{
    worker->clocks[CLOCK_REQUEST].timeout = options->keepalive_timeout;
    worker->clocks[CLOCK_HEAD].timeout = options->header_timeout;
    worker->clocks[CLOCK_BODY].timeout = options->body_timeout;
    worker->clocks[CLOCK_ANSWER].timeout = options->answer_timeout;
    worker->clocks[CLOCK_LINGER].timeout = 2;
    worker->clocks[CLOCK_TRAFFIC].timeout = options->idle_timeout;
    for (enum clock_of which = CLOCK_NONE; which < CLOCKS; which++) {
        ev_timer_init(&worker->clocks[which].timer, on_ring, 0, 0);
        worker->clocks[which].timer.data = worker;
    }
}

void clocks_stop(struct worker *worker)
{
    for (enum clock_of which = CLOCK_NONE; which < CLOCKS; which++)
        ev_timer_stop(worker->loop, &worker->clocks[which].timer);
}

void clock_enter(struct client *client, enum clock_of which)
{
    struct clock *clock = &client->worker->clocks[which];

    client->clock = which;
    client->clock_started = pool_now(client->worker->pool);
    DL_APPEND(clock->clients, client);
    if (clock->timeout > 0 && !ev_is_active(&clock->timer))
        ring_in(client->worker->loop, &clock->timer, clock->timeout);
}

void clock_leave(struct client *client)
{
    DL_DELETE(client->worker->clocks[client->clock].clients, client);
}

void clock_start(struct client *client, enum clock_of which)
{
    if (client->clock == which && client->next == NULL) {
        client->clock_started = pool_now(client->worker->pool); /* the last in its list already */
        return;
    }
    clock_leave(client);
    clock_enter(client, which);
}
