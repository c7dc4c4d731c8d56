/* table.h - uthash as this library uses it.
 *
 * uthash exits the process when memory runs out unless told otherwise; told so, `hh.tbl == NULL` after an add is the
 * error. Its memory is the env's: whoever adds or deletes has a variable `env` in scope. */
#ifndef LINKPOOL_LINK_TABLE_H
#define LINKPOOL_LINK_TABLE_H

#include "link/internal.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) link__alloc(env, (size))
#define uthash_free(memory, size) link__release(env, (memory), (size))
#include <uthash.h>

#endif
