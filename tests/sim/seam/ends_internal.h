/* ends_internal.h - what the files of the far ends share. */
#ifndef LINKPOOL_TESTS_SIM_SEAM_ENDS_INTERNAL_H
#define LINKPOOL_TESTS_SIM_SEAM_ENDS_INTERNAL_H

#include "link/address.h"
#include "tests/sim/seam/ends.h"
#include "tests/sim/seam/stage.h"

struct word { /* something to be said */
    double due;
    enum link_reason end; /* or the end, and how */
    size_t n, at;
    struct word *prev, *next;
    char bytes[];
};

struct peer {
    struct link_address address;
    enum testing_behaviour behaviour;
    bool echoes;
    char greeting[64];
    double connect_delay, answer_delay;
    size_t window, bytes;
    unsigned accepted;
    int listener, filler; /* of a unix one; -1: none */
};

struct end {
    struct ends *ends;
    struct peer *peer; /* NULL: nobody is there */
    int near, fd;      /* the library's and ours; -1: closed, or not accepted yet */
    bool is_unix, swallows, eof, silent, blocked;
    enum {
        END_NEW,
        END_COMING,
        END_OPEN,
        END_OVER
    } state;
    double started, due; /* COMING: since when, and when the next thing is decided */
    unsigned syn;
    int error; /* of a pair that never came up: why */
    size_t appetite;
    struct word *words;
    struct end *prev, *next;
};

struct ends {
    struct linkpool_env env;
    struct peer peers[STAGE_PEERS];
    struct end *all;
    double now;
};

void ends__env(struct ends *ends);
void ends__shut(struct end *end);
void ends__cut(struct end *end, enum link_reason how);
void ends__say(struct end *end, double due, enum link_reason how, const void *bytes, size_t n);

#endif
