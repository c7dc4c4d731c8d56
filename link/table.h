/* table.h - uthash as this library uses it.
 *
 * uthash exits the process when memory runs out unless told otherwise; told so, `hh.tbl == NULL` after an add is the
 * error. Its memory is the env's: whoever adds or deletes has a variable `env` in scope. */
#ifndef LINKPOOL_LINK_TABLE_H
#define LINKPOOL_LINK_TABLE_H

#include <string.h>

#include "link/internal.h"

/* Keys are short texts: uthash's own function costs as much as all the rest of an acquire. Eight bytes at a time, each
 * folded in by a multiplication with 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4). */
static inline uint64_t link__word(const void *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint64_t link__fold(uint64_t hash, const void *bytes)
{
    hash = (hash ^ link__word(bytes)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static inline unsigned link__hash(const void *key, size_t n)
{
    const char *at = key;
    char rest[8] = {0};
    uint64_t hash = n;

    for (; n > 16; n -= 8, at += 8)
        hash = link__fold(hash, at);
    if (n >
        8) { /* two words at once, some bytes perhaps for the second time; the other factor is a prime of xxHash's */
        hash = link__fold(hash, at) ^ link__word(at + n - 8) * 0xC2B2AE3D27D4EB4Fu;
    } else {
        memcpy(rest, at, n);
        hash = link__fold(hash, rest);
    }
    /* Once more, so that the low bits, which choose the bucket, have something of the last bytes. */
    return (unsigned)((hash ^ hash >> 32) * 0x9E3779B97F4A7C15u >> 32);
}

/* As memcmp() of the same length, 0 for equal, without the call. */
static inline int link__differ(const void *one, const void *other, size_t n)
{
    const char *a = one, *b = other;
    uint64_t x, y;

    if (n < 8)
        return memcmp(a, b, n);
    for (size_t at = 0; at < n; at += 8) {
        size_t from = at + 8 <= n ? at : n - 8; /* the last eight, some of them for the second time */
        memcpy(&x, a + from, 8);
        memcpy(&y, b + from, 8);
        if (x != y)
            return 1;
    }
    return 0;
}

#define HASH_KEYCMP(a, b, n)        link__differ((a), (b), (n))
#define HASH_FUNCTION(key, n, hash) ((hash) = link__hash((key), (n)))
#define HASH_NONFATAL_OOM           1
#define uthash_malloc(size)         link__alloc(env, (size))
#define uthash_free(memory, size)   link__release(env, (memory), (size))
#include <uthash.h>

#endif
