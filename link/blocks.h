/* blocks.h - memory that links need for a moment: blocks of one size, a few of which are kept for whoever is next, so
 * that what comes and goes with each turn asks the allocator for nothing. */
#ifndef LINKPOOL_LINK_BLOCKS_H
#define LINKPOOL_LINK_BLOCKS_H

#include "linkpool/driver.h"

enum {
    LINK_BLOCK = 4096,     /* bytes */
    LINK_SPARE_BLOCKS = 64 /* kept: a quarter of a MiB a pool */
};

/** All zero at first. */
struct link_blocks {
    struct link_spare_block *spare;
    unsigned n_spare;
};

void *link__block_take(struct link_blocks *blocks, const struct linkpool_env *env); /* not cleared; NULL: no memory */
void link__block_give(struct link_blocks *blocks, const struct linkpool_env *env, void *block);
void link__blocks_free(struct link_blocks *blocks, const struct linkpool_env *env);

#endif
