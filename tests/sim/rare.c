/* rare.c - the table of rarities. */
#include "tests/sim/rare.h"

#include <stdio.h>

const char *const rare__text[N_RARITIES] = {
#define X(name, text) text,
    RARITIES(X)
#undef X
};

unsigned rare__print(const struct rare *rare, uint32_t least)
{
    unsigned missed = 0;

    for (int i = 0; i < N_RARITIES; i++) {
        printf("%8u  %s%s\n", rare->n[i], rare__text[i], rare->n[i] < least ? "  (too few)" : "");
        missed += rare->n[i] < least;
    }
    return missed;
}
