/* own_names_user.c - the half of own_names that uses linkpool: its pool_free() is linkpool's. */
#include <ev.h>
#include <linkpool/linkpool.h>

int use_linkpool(void);

int use_linkpool(void)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct pool *pool = pool_new(loop, NULL);
    struct backoff_history history = {.attempt = 1};
    double delay = backoff_delay(&backoff_edge, &history, 0.5);

    pool_free(pool);
    ev_loop_destroy(loop);
    return pool && delay > 0 ? 0 : 1;
}
