/* matrix.c - every public function, from every callback that may call anything, with a lease in every state. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include "tests/matrix/calls.h"

static void play_all(enum cell_from from)
{
    unsigned played = 0;

    for (unsigned i = 0; i < cell_n_functions; i++)
        for (enum cell_lease lease = LEASE_OVER; lease <= LEASE_LOST; lease++) {
            struct cell cell = {
                .function = cell_functions[i].name, .call = cell_functions[i].call, .from = from, .lease = lease};
            if (!cell_exists(from, lease))
                continue;
            cell_play(&cell);
            played++;
        }
    cr_assert(ge(uint, played, cell_n_functions));
}

/* clang-format off */
Test(matrix, from_done)                  { play_all(FROM_DONE); }
Test(matrix, from_done_of_pool_free)     { play_all(FROM_DONE_OF_FREE); }
Test(matrix, from_closed)                { play_all(FROM_CLOSED); }
Test(matrix, from_closed_of_pool_free)   { play_all(FROM_CLOSED_OF_FREE); }
Test(matrix, from_readable)              { play_all(FROM_READABLE); }
Test(matrix, from_writable)              { play_all(FROM_WRITABLE); }
Test(matrix, from_message)               { play_all(FROM_MESSAGE); }
Test(matrix, from_error)                 { play_all(FROM_ERROR); }
Test(matrix, from_part)                  { play_all(FROM_PART); }
Test(matrix, from_pool_drained)          { play_all(FROM_POOL_DRAINED); }
Test(matrix, from_target_drained)        { play_all(FROM_TARGET_DRAINED); }
Test(matrix, from_testing_at)            { play_all(FROM_TIMER); }
Test(matrix, from_call_part)             { play_all(FROM_CALL_PART); }
Test(matrix, from_call_done)             { play_all(FROM_CALL_DONE); }
Test(matrix, from_call_done_of_free)     { play_all(FROM_CALL_DONE_OF_FREE); }
Test(matrix, from_fanout_done)           { play_all(FROM_FANOUT_DONE); }
Test(matrix, from_fanout_done_of_free)   { play_all(FROM_FANOUT_DONE_OF_FREE); }
Test(matrix, from_link_connecting)       { play_all(FROM_CONNECTING); }
Test(matrix, from_link_connected)        { play_all(FROM_CONNECTED); }
Test(matrix, from_link_disconnected)     { play_all(FROM_DISCONNECTED); }
Test(matrix, from_link_reconnect)        { play_all(FROM_RECONNECT); }
Test(matrix, from_link_stopped)          { play_all(FROM_STOPPED); }
/* clang-format on */

/* What is compiled in is what the headers have now; a function without a caller would not have compiled. */
Test(matrix, the_list_of_functions_is_that_of_the_headers)
{
    cr_assert(eq(int, system("tests/matrix/generate.sh | cmp - tests/matrix/functions.h"), 0));
    cr_assert(lt(uint, 70, cell_n_functions));
}
