/* faults.c - what the system does wrong: calls and allocations that fail when told to, and the count of misuses.
 *
 * Each block of the env's allocator carries its size in front, so that a wrong `was` is seen. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "link/testing/testing_internal.h"

struct block {
    size_t size;
    uint64_t mark; /* ALIVE or FREED */
    max_align_t bytes[];
};

static const uint64_t alive = 0x6c6976652d626c6bu, freed = 0x667265642d626c6bu;

void testing__misuse(struct testing *t, const char *what)
{
    t->misuses++;
    t->misuse = what;
}

static bool fails(struct testing__fault *fault)
{
    fault->count++;
    return fault->at && (fault->count == fault->at || (fault->all_from_then && fault->count > fault->at));
}

static void set_fault(struct testing__fault *fault, unsigned nth, int error, bool all_from_then)
{
    fault->at = nth ? fault->count + nth : 0;
    fault->error = error;
    fault->all_from_then = all_from_then;
}

int testing__called(struct testing *t, enum testing_call call)
{
    return fails(&t->calls[call]) ? t->calls[call].error : 0;
}

static bool is_call(struct testing *t, enum testing_call call)
{
    bool is = (unsigned)call < TESTING_CALLS;

    if (!is)
        testing__misuse(t, "a call that there is not");
    return is;
}

void testing_fail_call(struct testing *t, enum testing_call call, unsigned nth, int error, bool all_from_then)
{
    if (is_call(t, call))
        set_fault(&t->calls[call], nth, error, all_from_then);
}

void testing_fail_allocation(struct testing *t, unsigned nth, bool all_from_then)
{
    set_fault(&t->allocations, nth, 0, all_from_then);
}

static struct block *block_of(struct testing *t, void *memory, size_t was)
{
    struct block *block = testing__of(memory, struct block, bytes);

    if (block->mark != alive) {
        testing__misuse(t, "a block freed twice, or not the env's");
        return NULL;
    }
    if (block->size != was)
        testing__misuse(t, "realloc: `was` is not the block's size");
    return block;
}

static void release(struct testing *t, struct block *block)
{
    t->bytes -= block->size;
    t->blocks--;
    block->mark = freed;
    free(block);
}

static void *resize(struct testing *t, struct block *block, size_t size)
{
    size_t was = block ? block->size : 0;
    struct block *grown;

    if (fails(&t->allocations) || size > SIZE_MAX - sizeof *block)
        return NULL;
    grown = malloc(sizeof *grown + size); /* always elsewhere: a pointer kept across a realloc shows */
    if (!grown)
        return NULL;
    *grown = (struct block){.size = size, .mark = alive};
    memset(grown->bytes, 0xa5, size); /* nobody may count on zeroes */
    if (block) {
        memcpy(grown->bytes, block->bytes, was < size ? was : size);
        release(t, block);
    }
    t->bytes += size;
    t->blocks++;
    return grown->bytes;
}

void *testing__realloc(void *data, void *memory, size_t was, size_t size)
{
    struct testing *t = data;
    struct block *block = NULL;

    if (memory) {
        block = block_of(t, memory, was);
        if (!block)
            return NULL;
    } else if (was != 0) {
        testing__misuse(t, "realloc: a size of no block");
    }
    if (size != 0)
        return resize(t, block, size);
    if (block)
        release(t, block);
    return NULL;
}

void testing_limit_descriptors(struct testing *t, unsigned n)
{
    t->max_open = n;
}

void testing_send_buffer(struct testing *t, size_t bytes)
{
    t->send_buffer = bytes ? bytes : 1;
}

void testing_short_writes(struct testing *t, bool on)
{
    t->short_writes = on;
}

uint64_t testing_calls(const struct testing *t, enum testing_call call)
{
    return (unsigned)call < TESTING_CALLS ? t->calls[call].count : 0;
}

uint64_t testing_allocations(const struct testing *t)
{
    return t->allocations.count;
}

unsigned testing_open_descriptors(const struct testing *t)
{
    return t->n_open;
}

size_t testing_bytes(const struct testing *t)
{
    return t->bytes;
}

size_t testing_blocks(const struct testing *t)
{
    return t->blocks;
}

unsigned testing_misuses(const struct testing *t)
{
    return t->misuses;
}

const char *testing_last_misuse(const struct testing *t)
{
    return t->misuse ? t->misuse : "";
}
