/* heap.c - things in order of a moment: what was put in comes out in order, whatever was moved and taken out. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "link/heap.h"
#include "linkpool/error.h"
#include "linkpool/testing.h"

enum {
    NODES = 300
};

static struct testing *t;
static struct link_heap heap;
static struct link_node nodes[NODES];

static void begin(void)
{
    t = testing_new(1);
    for (int i = 0; i < NODES; i++)
        cr_assert(eq(int, link__heap_hold(&heap, testing_env(t)), 0));
}

static void end(void)
{
    link__heap_free(&heap, testing_env(t));
    cr_assert(eq(sz, testing_blocks(t), 0));
    cr_assert(eq(uint, testing_misuses(t), 0));
    testing_free(t);
}

TestSuite(heap, .init = begin, .fini = end);

static double draw(void)
{
    return (double)(testing_random(t) % 1000);
}

/* Each node knows its place, and none is due before the one above it. */
static void check(unsigned n)
{
    unsigned set = 0;

    cr_assert(eq(uint, heap.n, n));
    for (unsigned i = 1; i <= heap.n; i++) {
        cr_assert(eq(uint, heap.slots[i]->place, i));
        if (i > 1)
            cr_assert(ge(dbl, heap.slots[i]->due, heap.slots[i / 2]->due));
    }
    for (int i = 0; i < NODES; i++)
        set += link__node_is_set(&nodes[i]);
    cr_assert(eq(uint, set, n));
}

static void take_all_in_order(unsigned n)
{
    double last = -INFINITY;

    for (; n > 0; n--) {
        struct link_node *first = link__heap_first(&heap);
        cr_assert(ge(dbl, first->due, last));
        last = first->due;
        link__heap_clear(&heap, first);
        cr_assert(not(link__node_is_set(first)));
        check(n - 1);
    }
    cr_assert(eq(ptr, link__heap_first(&heap), NULL));
}

Test(heap, an_empty_heap_has_no_first)
{
    cr_assert(eq(ptr, link__heap_first(&heap), NULL));
    check(0);
}

Test(heap, what_was_put_in_comes_out_in_order)
{
    for (unsigned i = 0; i < NODES; i++) {
        link__heap_set(&heap, &nodes[i], draw());
        check(i + 1);
    }
    take_all_in_order(NODES);
}

Test(heap, a_node_that_is_moved_keeps_the_order)
{
    for (int i = 0; i < NODES; i++)
        link__heap_set(&heap, &nodes[i], draw());
    for (int i = 0; i < 2000; i++) {
        struct link_node *node = &nodes[testing_random(t) % NODES];
        double due = draw();
        link__heap_set(&heap, node, due);
        cr_assert(eq(dbl, node->due, due));
        check(NODES);
    }
    take_all_in_order(NODES);
}

Test(heap, nodes_may_go_from_anywhere_and_come_back)
{
    unsigned n = 0;

    for (int i = 0; i < 5000; i++) {
        struct link_node *node = &nodes[testing_random(t) % NODES];
        if (link__node_is_set(node)) {
            link__heap_clear(&heap, node);
            n--;
        } else {
            link__heap_set(&heap, node, draw());
            n++;
        }
        check(n);
    }
    take_all_in_order(n);
}

Test(heap, clearing_a_node_that_is_in_none_changes_nothing)
{
    link__heap_set(&heap, &nodes[0], 5);
    link__heap_clear(&heap, &nodes[1]);
    link__heap_clear(&heap, &nodes[1]);
    check(1);
    cr_assert(eq(ptr, link__heap_first(&heap), &nodes[0]));
}

Test(heap, places_are_reserved_so_that_setting_never_needs_memory)
{
    uint64_t before = testing_allocations(t);

    testing_fail_allocation(t, 1, true);
    for (int i = 0; i < NODES; i++)
        link__heap_set(&heap, &nodes[i], draw());
    cr_assert(eq(u64, testing_allocations(t), before));
    take_all_in_order(NODES);
}

Test(heap, without_memory_a_place_is_refused_and_what_is_there_stays)
{
    int refused = 0;

    for (int i = 0; i < NODES; i++)
        link__heap_set(&heap, &nodes[i], draw());
    testing_fail_allocation(t, 1, true);
    for (int i = 0; i < 2 * NODES && !refused; i++) /* until its room is used up */
        refused = link__heap_hold(&heap, testing_env(t));
    cr_assert(eq(int, refused, LINKPOOL_ENOMEM));
    cr_assert(eq(int, link__heap_hold(&heap, testing_env(t)), LINKPOOL_ENOMEM));
    take_all_in_order(NODES);
    link__heap_drop(&heap); /* a place given back is there for the next */
    cr_assert(eq(int, link__heap_hold(&heap, testing_env(t)), 0));
}
