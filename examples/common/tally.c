/* tally.c - a uthash table from id to count. */
#include "examples/common/tally.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct tally_entry {
    UT_hash_handle hh;
    unsigned times;
    char id[];
};

static struct tally_entry *add_entry(struct tally *tally, const char *id)
{
    size_t n = strlen(id);
    struct tally_entry *entry;

    if (HASH_COUNT(tally->entries) >= TALLY_MAX)
        return NULL;
    entry = calloc(1, sizeof *entry + n + 1);
    if (entry == NULL)
        return NULL;
    memcpy(entry->id, id, n + 1);
    HASH_ADD_KEYPTR(hh, tally->entries, entry->id, n, entry);
    if (entry->hh.tbl == NULL) { /* uthash ran out of memory */
        free(entry);
        return NULL;
    }
    return entry;
}

unsigned tally_add(struct tally *tally, const char *id)
{
    struct tally_entry *entry;

    HASH_FIND_STR(tally->entries, id, entry);
    if (entry == NULL)
        entry = add_entry(tally, id);
    return entry == NULL ? 0 : ++entry->times;
}

void tally_clear(struct tally *tally)
{
    struct tally_entry *entry, *next;

    HASH_ITER (hh, tally->entries, entry, next) {
        HASH_DEL(tally->entries, entry);
        free(entry);
    }
}
