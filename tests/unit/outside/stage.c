/* stage.c - see stage.h. */
#include "stage.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

void stage_fail(const char *file, int line, const char *fact)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, fact);
    exit(1);
}

void stage_up(struct stage *stage, bool real, const struct pool_host_options *host)
{
    struct pool_options options;

    pool_options_init(&options);
    options.host = host;
    *stage = (struct stage){0};
    if (real) {
        stage->loop = ev_loop_new(EVFLAG_AUTO);
        stage->peer = testing_peer_on_loop(stage->loop, "127.0.0.1:0", TESTING_ACCEPT);
        stage->pool = pool_new(stage->loop, &options);
    } else {
        stage->t = testing_new(1);
        stage->peer = testing_peer_add(stage->t, "10.0.0.1:80", TESTING_ACCEPT);
        options.env = testing_env(stage->t);
        stage->pool = pool_new_on(testing_driver(stage->t), &options);
    }
    expect(stage->peer && stage->pool);
}

static void on_too_late(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop, (void)events;
    *(bool *)timer->data = true;
}

static bool run_loop(struct ev_loop *loop, bool (*reached)(void *data), void *data)
{
    struct ev_timer timer;
    bool too_late = false;

    ev_timer_init(&timer, on_too_late, 10, 0);
    timer.data = &too_late;
    ev_timer_start(loop, &timer);
    while (!reached(data) && !too_late)
        ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &timer);
    return reached(data);
}

void stage_until(struct stage *stage, bool (*reached)(void *data), void *data)
{
    if (stage->loop)
        expect(run_loop(stage->loop, reached, data));
    else
        expect(testing_run_until(stage->t, reached, data, 10));
}

void stage_down(struct stage *stage)
{
    pool_free(stage->pool);
    if (stage->loop) {
        testing_peer_free(stage->peer);
        ev_loop_destroy(stage->loop);
        return;
    }
    expect(testing_misuses(stage->t) == 0);
    expect(testing_open_descriptors(stage->t) == 0);
    expect(testing_blocks(stage->t) == 0);
    testing_free(stage->t);
}
