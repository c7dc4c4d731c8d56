/* timers.c - timers, ordered by time and then by when they were armed.
 *
 * Whoever owns a timer holds a place for it beforehand, so that arming one cannot fail. */
#include <stdlib.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

static bool before(const struct testing__timer *a, const struct testing__timer *b)
{
    return a->due < b->due || (a->due == b->due && a->sequence < b->sequence);
}

static void put(struct testing__heap *heap, size_t place, struct testing__timer *timer)
{
    heap->at[place] = timer;
    timer->place = place;
}

static void rise(struct testing__heap *heap, size_t place, struct testing__timer *timer)
{
    for (; place > 1 && before(timer, heap->at[place / 2]); place /= 2)
        put(heap, place, heap->at[place / 2]);
    put(heap, place, timer);
}

static void sink(struct testing__heap *heap, size_t place, struct testing__timer *timer)
{
    for (size_t child; (child = 2 * place) <= heap->n; place = child) {
        if (child < heap->n && before(heap->at[child + 1], heap->at[child]))
            child++;
        if (before(timer, heap->at[child]))
            break;
        put(heap, place, heap->at[child]);
    }
    put(heap, place, timer);
}

static void settle(struct testing__heap *heap, size_t place, struct testing__timer *timer)
{
    if (place > 1 && before(timer, heap->at[place / 2]))
        rise(heap, place, timer);
    else
        sink(heap, place, timer);
}

int testing__hold(struct testing__heap *heap)
{
    if (heap->held == heap->room) {
        size_t room = heap->room ? 2 * heap->room : 64;
        struct testing__timer **at = realloc(heap->at, (room + 1) * sizeof *at);
        if (!at)
            return LINKPOOL_ENOMEM;
        heap->at = at;
        heap->room = room;
    }
    heap->held++;
    return 0;
}

void testing__unhold(struct testing__heap *heap, struct testing__timer *timer)
{
    testing__disarm(heap, timer);
    heap->held--;
}

struct testing__timer *testing__top(const struct testing__heap *heap)
{
    return heap->n ? heap->at[1] : NULL;
}

static void tell(struct testing__heap *heap, const struct testing__timer *was)
{
    if (heap->top_changed && testing__top(heap) != was)
        heap->top_changed(heap);
}

static void take_out(struct testing__heap *heap, struct testing__timer *timer)
{
    struct testing__timer *last = heap->at[heap->n--];

    if (last != timer)
        settle(heap, timer->place, last);
    timer->place = 0;
}

void testing__arm(struct testing__heap *heap, struct testing__timer *timer, double due)
{
    if (timer->place)
        take_out(heap, timer);
    timer->due = due;
    timer->sequence = heap->sequence++;
    heap->n++;
    rise(heap, heap->n, timer);
    if (timer->place == 1)
        tell(heap, NULL);
}

void testing__disarm(struct testing__heap *heap, struct testing__timer *timer)
{
    const struct testing__timer *was = testing__top(heap);

    if (timer->place) {
        take_out(heap, timer);
        tell(heap, was);
    }
}
