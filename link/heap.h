/* heap.h - things in order of a moment: timers, and whatever else is due by a number.
 *
 * A binary heap of pointers to nodes that lie in their owners. Room is reserved when an owner is made (hold), so that
 * setting a node never fails. */
#ifndef LINKPOOL_LINK_HEAP_H
#define LINKPOOL_LINK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linkpool/driver.h"

struct link_node {
    double due;
    uint32_t place; /* 1 and up: its place in the heap; 0: in none */
    uint32_t kind;  /* the owner's: what the node is part of */
};

struct link_heap {
    struct link_node **slots; /* slots[1] is due first */
    uint32_t n, held, room;
};

/** Makes sure of room for one more owner's node. @return 0, or LINKPOOL_ENOMEM. */
int link__heap_hold(struct link_heap *heap, const struct linkpool_env *env);
/** An owner, whose node is in no heap, is gone. */
void link__heap_drop(struct link_heap *heap);
void link__heap_free(struct link_heap *heap, const struct linkpool_env *env);

void link__heap_set(struct link_heap *heap, struct link_node *node, double due); /* puts it in, or moves it */
void link__heap_clear(struct link_heap *heap, struct link_node *node);           /* takes it out; not in: nothing */

static inline struct link_node *link__heap_first(const struct link_heap *heap)
{
    return heap->n ? heap->slots[1] : NULL;
}
static inline bool link__node_is_set(const struct link_node *node)
{
    return node->place != 0;
}

#endif
