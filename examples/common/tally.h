/* tally.h - how often each id was seen. Bounded: past TALLY_MAX ids new ones are not remembered. */
#ifndef EXAMPLES_TALLY_H
#define EXAMPLES_TALLY_H

enum {
    TALLY_MAX = 1000000
};

struct tally_entry;

/** All zero before its first use. */
struct tally {
    struct tally_entry *entries;
};

/** Counts one more of `id` and returns how many that makes; 0: not remembered (full, or out of memory). */
unsigned tally_add(struct tally *tally, const char *id);

/** Forgets all. */
void tally_clear(struct tally *tally);

#endif
