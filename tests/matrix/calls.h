/* calls.h - one caller for each public function: calls it as its state allows, and asserts the result. */
#ifndef LINKPOOL_TESTS_MATRIX_CALLS_H
#define LINKPOOL_TESTS_MATRIX_CALLS_H

#include "tests/matrix/cell.h"

struct cell_function {
    const char *name;
    void (*call)(struct cell *cell);
};

/** All functions of functions.h; one without a caller does not compile. */
extern const struct cell_function cell_functions[];
extern const unsigned cell_n_functions;

#define FUNCTION(name) void call_##name(struct cell *cell);
#include "tests/matrix/functions.h"
#undef FUNCTION

#define EXPECT(call, expected) cell_expect(cell, #call, (long)(call), (long)(expected))

/** No new leases: the pool drains, or is being freed. */
static inline bool cell_is_closed(const struct cell *cell)
{
    return cell->pool_drains || cell->freeing;
}

#endif
