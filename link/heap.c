/* heap.c - a binary heap: the first due is slots[1], the children of i are 2i and 2i + 1. */
#include "link/heap.h"

#include "linkpool/error.h"

static void put(struct link_heap *heap, struct link_node *node, uint32_t place)
{
    heap->slots[place] = node;
    node->place = place;
}

static void rise(struct link_heap *heap, struct link_node *node, uint32_t place)
{
    for (; place > 1 && heap->slots[place / 2]->due > node->due; place /= 2)
        put(heap, heap->slots[place / 2], place);
    put(heap, node, place);
}

static void sink(struct link_heap *heap, struct link_node *node, uint32_t place)
{
    for (uint32_t child; (child = place * 2) <= heap->n; place = child) {
        if (child < heap->n && heap->slots[child + 1]->due < heap->slots[child]->due)
            child++;
        if (heap->slots[child]->due >= node->due)
            break;
        put(heap, heap->slots[child], place);
    }
    put(heap, node, place);
}

int link__heap_hold(struct link_heap *heap, const struct linkpool_env *env)
{
    if (heap->held + 1 >= heap->room) {
        uint32_t room = heap->room ? heap->room * 2 : 16;
        struct link_node **slots =
            env->realloc(env->data, heap->slots, heap->room * sizeof *slots, room * sizeof *slots);

        if (!slots)
            return LINKPOOL_ENOMEM;
        heap->slots = slots;
        heap->room = room;
    }
    heap->held++;
    return 0;
}

void link__heap_drop(struct link_heap *heap)
{
    heap->held--;
}

void link__heap_free(struct link_heap *heap, const struct linkpool_env *env)
{
    if (heap->slots)
        env->realloc(env->data, heap->slots, heap->room * sizeof *heap->slots, 0);
    *heap = (struct link_heap){0};
}

void link__heap_set(struct link_heap *heap, struct link_node *node, double due)
{
    double was = node->due;

    node->due = due;
    if (!node->place)
        rise(heap, node, ++heap->n);
    else if (due < was)
        rise(heap, node, node->place);
    else
        sink(heap, node, node->place);
}

void link__heap_clear(struct link_heap *heap, struct link_node *node)
{
    uint32_t place = node->place;

    if (!place)
        return;
    node->place = 0;
    struct link_node *last = heap->slots[heap->n--];
    if (last == node)
        return;
    if (place > 1 && heap->slots[place / 2]->due > last->due)
        rise(heap, last, place);
    else
        sink(heap, last, place);
}
