/* table.h - uthash as this library uses it.
 *
 * uthash exits the process when memory runs out unless told otherwise; told so, `hh.tbl == NULL` after an add is the
 * error. Its memory is the env's: whoever adds or deletes has a variable `env` in scope. */
#ifndef LINKPOOL_LINK_TABLE_H
#define LINKPOOL_LINK_TABLE_H

#include <string.h>

#include "link/internal.h"

/* Keys are short texts: uthash's own function costs as much as all the rest of an acquire. Eight bytes at a time, each
 * folded in by a multiplication whose halves meet, so that every bit of either factor reaches all of the result: as in
 * Wang Yi's wyhash, of which the odd factors are too. */
static inline uint64_t link__word(const void *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint64_t link__fold(uint64_t one, uint64_t other)
{
    __extension__ unsigned __int128 product = (unsigned __int128)one * other;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline unsigned link__hash(const void *key, size_t n)
{
    const uint64_t odd = 0xA0761D6478BD642Fu, other = 0xE7037ED1A0B428DBu;
    const char *at = key;
    char rest[8] = {0};
    uint64_t hash = n;

    for (; n > 16; n -= 8, at += 8)
        hash = link__fold(link__word(at) ^ odd, hash ^ other);
    if (n > 8) { /* two words at once, some bytes perhaps for the second time */
        hash = link__fold(link__word(at) ^ odd, link__word(at + n - 8) ^ hash ^ other);
    } else {
        memcpy(rest, at, n);
        hash = link__fold(link__word(rest) ^ odd, hash ^ other);
    }
    return (unsigned)(hash ^ hash >> 32);
}

/* As memcmp() of the same length, 0 for equal, without the call. The last eight bytes, some of which may be looked at
 * twice, come first: there most keys differ. */
static inline int link__differ(const void *one, const void *other, size_t n)
{
    const char *a = one, *b = other;

    if (n < 8)
        return memcmp(a, b, n);
    if (link__word(a + n - 8) != link__word(b + n - 8))
        return 1;
    for (size_t at = 0; at + 8 < n; at += 8)
        if (link__word(a + at) != link__word(b + at))
            return 1;
    return 0;
}

#define HASH_KEYCMP(a, b, n)        link__differ((a), (b), (n))
#define HASH_FUNCTION(key, n, hash) ((hash) = link__hash((key), (n)))
#define HASH_NONFATAL_OOM           1
#define uthash_malloc(size)         link__alloc(env, (size))
#define uthash_free(memory, size)   link__release(env, (memory), (size))
#include <uthash.h>

/* To be called after an add: keeps two places a key, 32 to 64 bytes, so that a look-up seldom passes another key, which
 * is a line of cache each time, and nobody can foretell when. uthash itself waits for a chain of ten. Without memory
 * the table stays as it is. */
static inline void link__widen(UT_hash_table *table, const struct linkpool_env *env)
{
    int oomed = 0;

    if (table->num_items > table->num_buckets / 2)
        HASH_EXPAND_BUCKETS(hh, table, oomed);
    (void)oomed;
}

#endif
