/* blocks.c - see blocks.h. */
#include "link/blocks.h"

#include <stddef.h>

struct link_spare_block {
    struct link_spare_block *next;
};

void *link__block_take(struct link_blocks *blocks, const struct linkpool_env *env)
{
    struct link_spare_block *block = blocks->spare;

    if (!block)
        return env->realloc(env->data, NULL, 0, LINK_BLOCK);
    blocks->spare = block->next;
    blocks->n_spare--;
    return block;
}

void link__block_give(struct link_blocks *blocks, const struct linkpool_env *env, void *block)
{
    struct link_spare_block *spare = block;

    if (blocks->n_spare >= LINK_SPARE_BLOCKS) {
        env->realloc(env->data, block, LINK_BLOCK, 0);
        return;
    }
    spare->next = blocks->spare;
    blocks->spare = spare;
    blocks->n_spare++;
}

void link__blocks_free(struct link_blocks *blocks, const struct linkpool_env *env)
{
    while (blocks->spare) {
        struct link_spare_block *block = blocks->spare;
        blocks->spare = block->next;
        env->realloc(env->data, block, LINK_BLOCK, 0);
    }
    blocks->n_spare = 0;
}
