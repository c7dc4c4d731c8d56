/* faults.c - planted faults: each test must turn its run red, by the flags that the real tests run with.
 *
 * `green` must not, or the others prove nothing. Volatile keeps the compiler from seeing through them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <stdlib.h>

static volatile int zero;
static char *volatile lost;
static void *(*volatile allocate)(size_t) = malloc;

Test(faults, green)
{
    char *memory = malloc(16);

    cr_assert(ne(ptr, memory, NULL));
    memory[15] = (char)zero;
    cr_assert(eq(int, memory[15], 0));
    free(memory);
}

Test(faults, failed_assertion)
{
    cr_assert(eq(int, zero, 1));
}

Test(faults, leak)
{
    lost = malloc(16);
    cr_assert(ne(ptr, lost, NULL));
    lost = NULL;
}

Test(faults, heap_overflow)
{
    char *memory = allocate(16);

    memory[16 + zero] = 1;
    free(memory);
}

Test(faults, undefined_behaviour)
{
    int most = INT_MAX - zero;

    zero = most + 1;
    zero = 0;
}

Test(faults, uninitialised_read)
{
    char *memory = allocate(16);

    if (memory[zero] == 'x')
        zero = 0;
    free(memory);
}
