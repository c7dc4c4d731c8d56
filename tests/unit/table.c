/* table.c - hashing: the keys that users have spread over a table, and a table has places enough. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/table.h"
#include "linkpool/testing.h"

enum {
    KEYS = 65536,
    BUCKETS = 2 * KEYS,
    ROOM = 64
};

struct entry {
    UT_hash_handle hh;
    char key[ROOM];
};

TestSuite(table, .timeout = 60);

static size_t address(char key[ROOM], unsigned i)
{
    return (size_t)snprintf(key, ROOM, "10.%u.%u.%u:6379", i >> 16, i >> 8 & 255, i & 255);
}

static size_t port(char key[ROOM], unsigned i)
{
    return (size_t)snprintf(key, ROOM, "127.0.0.1:%u", i);
}

static size_t name(char key[ROOM], unsigned i)
{
    return (size_t)snprintf(key, ROOM, "db%u", i);
}

static size_t long_name(char key[ROOM], unsigned i)
{
    return (size_t)snprintf(key, ROOM, "backend-%u.service.example.internal:443", i);
}

static size_t bytes(char key[ROOM], unsigned i)
{
    memset(key, 0, ROOM);
    memcpy(key + 20, &i, sizeof i);
    return 40;
}

/* Thrown in by chance the longest chain is of 6 or 7, and a look-up passes a quarter of another key: not far from it.
 */
static void expect_spread(size_t (*make)(char *, unsigned))
{
    unsigned *chains = calloc(BUCKETS, sizeof *chains), longest = 0;
    double passed = 0;

    cr_assert(ne(ptr, chains, NULL));
    for (unsigned i = 0; i < KEYS; i++) {
        char key[ROOM];
        unsigned *chain = &chains[link__hash(key, make(key, i)) % BUCKETS];
        passed += (*chain)++;
        longest = *chain > longest ? *chain : longest;
    }
    free(chains);
    cr_assert(le(uint, longest, 10));
    cr_assert(lt(dbl, passed / KEYS, 0.5));
}

Test(table, keys_as_users_have_them_spread)
{
    expect_spread(address);
    expect_spread(port);
    expect_spread(name);
    expect_spread(long_name);
    expect_spread(bytes);
}

Test(table, has_two_places_a_key)
{
    struct testing *t = testing_new(1);
    const struct linkpool_env *env = testing_env(t);
    struct entry *entries = calloc(1000, sizeof *entries), *table = NULL;

    for (unsigned i = 0; i < 1000; i++) {
        HASH_ADD_KEYPTR(hh, table, entries[i].key, address(entries[i].key, i), &entries[i]);
        link__widen(table->hh.tbl, env);
        cr_assert(ge(uint, table->hh.tbl->num_buckets, 2 * (i + 1)));
    }
    cr_assert(le(uint, table->hh.tbl->num_buckets, 2048));
    HASH_CLEAR(hh, table);
    free(entries);
    testing_free(t);
}

Test(table, that_cannot_grow_stays_as_it_is)
{
    struct testing *t = testing_new(1);
    const struct linkpool_env *env = testing_env(t);
    struct entry entries[17] = {0}, *table = NULL, *found;

    for (unsigned i = 0; i < 17; i++)
        HASH_ADD_KEYPTR(hh, table, entries[i].key, port(entries[i].key, i), &entries[i]);
    testing_fail_allocation(t, 1, false);
    link__widen(table->hh.tbl, env);
    cr_assert(eq(uint, table->hh.tbl->num_buckets, 32));
    HASH_FIND(hh, table, "127.0.0.1:16", 12, found);
    cr_assert(eq(ptr, found, &entries[16]));
    HASH_CLEAR(hh, table);
    testing_free(t);
}
