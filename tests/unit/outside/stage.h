/* stage.h - where a scenario is played: in virtual time, or on a real loop with real sockets. The peers are the same.
 *
 * These programs know linkpool as a user's do: by its installed headers and library alone. */
#ifndef OUTSIDE_STAGE_H
#define OUTSIDE_STAGE_H

#include <linkpool/linkpool.h>
#include <stdbool.h>

/* Unlike assert(), it is there in every build. Says where and what, and ends the program. */
#define expect(fact) ((fact) ? (void)0 : stage_fail(__FILE__, __LINE__, #fact))
_Noreturn void stage_fail(const char *file, int line, const char *fact);

struct stage {
    struct testing *t;    /* of virtual time, or NULL */
    struct ev_loop *loop; /* real, or NULL */
    struct testing_peer *peer;
    struct pool *pool;
};

/* Sets up one peer that accepts, and a pool whose hosts have these options. */
void stage_up(struct stage *stage, bool real, const struct pool_host_options *options);

/* Runs until `reached(data)`, and fails when that takes 10 seconds. */
void stage_until(struct stage *stage, bool (*reached)(void *data), void *data);

/* Frees all there is; in virtual time nothing may be left. */
void stage_down(struct stage *stage);

#endif
