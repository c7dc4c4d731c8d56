/* own_names.c - a program with functions of its own called as linkpool's are: it links, and each calls its own. */
#include <stdio.h>
#include <stdlib.h>

int use_linkpool(void); /* own_names_user.c */

static int called;

/* None of these is linkpool's. */
void pool_free(void *pool);
int link_start(void *link);
double backoff_delay(void);
extern int protocol_raw;
int protocol_raw = 1;

void pool_free(void *pool)
{
    called++;
    free(pool);
}

int link_start(void *link)
{
    called++;
    return link != NULL;
}

double backoff_delay(void)
{
    called++;
    return -1;
}

int main(void)
{
    if (use_linkpool() || called) {
        fputs("own_names: linkpool called the program's functions\n", stderr);
        return 1;
    }
    pool_free(malloc(1));
    if (link_start(&called) != 1 || backoff_delay() > 0 || called != 3 || protocol_raw != 1) {
        fputs("own_names: the program called linkpool's functions\n", stderr);
        return 1;
    }
    puts("own_names: passed");
    return 0;
}
