/* timers.c - timers, ordered by time and then by when they were armed.
 *
 * Whoever owns a timer holds a place for it beforehand, so that arming one cannot fail. */
#include <stdlib.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

static bool before(const struct testing__place *a, const struct testing__place *b)
{
    return a->due < b->due || (a->due == b->due && a->sequence < b->sequence);
}

static void put(struct testing__heap *heap, size_t i, struct testing__place place)
{
    heap->at[i] = place;
    place.timer->place = i;
}

static void rise(struct testing__heap *heap, size_t i, struct testing__place place)
{
    for (; i > 1 && before(&place, &heap->at[i / 2]); i /= 2)
        put(heap, i, heap->at[i / 2]);
    put(heap, i, place);
}

static void sink(struct testing__heap *heap, size_t i, struct testing__place place)
{
    for (size_t child; (child = 2 * i) <= heap->n; i = child) {
        if (child < heap->n && before(&heap->at[child + 1], &heap->at[child]))
            child++;
        if (before(&place, &heap->at[child]))
            break;
        put(heap, i, heap->at[child]);
    }
    put(heap, i, place);
}

static void settle(struct testing__heap *heap, size_t i, struct testing__place place)
{
    if (i > 1 && before(&place, &heap->at[i / 2]))
        rise(heap, i, place);
    else
        sink(heap, i, place);
}

int testing__hold(struct testing__heap *heap)
{
    if (heap->held == heap->room) {
        size_t room = heap->room ? 2 * heap->room : 64;
        struct testing__place *at = realloc(heap->at, (room + 1) * sizeof *at);
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
    return heap->n ? heap->at[1].timer : NULL;
}

static void tell(struct testing__heap *heap, const struct testing__timer *was)
{
    if (heap->top_changed && testing__top(heap) != was)
        heap->top_changed(heap);
}

static void take_out(struct testing__heap *heap, struct testing__timer *timer)
{
    struct testing__place last = heap->at[heap->n--];

    if (last.timer != timer)
        settle(heap, timer->place, last);
    timer->place = 0;
}

void testing__arm(struct testing__heap *heap, struct testing__timer *timer, double due)
{
    if (timer->place)
        take_out(heap, timer);
    timer->due = due;
    heap->n++;
    rise(heap, heap->n, (struct testing__place){.due = due, .sequence = heap->sequence++, .timer = timer});
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
