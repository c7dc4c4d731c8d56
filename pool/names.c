/* names.c - the texts by which hosts and targets are asked for, so that acquiring by text neither parses nor packs.
 *
 * Bounded: over max_names a text is not remembered. A target's name always is. */
#include <string.h>

#include "pool/internal.h"

int pool__name_add(struct pool *pool, const char *text, struct pool_host *host, struct pool_target *target)
{
    const struct linkpool_env *env = pool->core.env;
    size_t length = strlen(text);
    struct pool_name *name;

    if (host && pool->n_names >= pool->options.max_names)
        return 0;
    if (!(name = link__alloc(env, sizeof *name + length + 1)))
        return LINKPOOL_ENOMEM;
    memcpy(name->text, text, length + 1);
    HASH_ADD_KEYPTR(hh, pool->names, name->text, length, name);
    if (!name->hh.tbl) {
        link__release(env, name, sizeof *name + length + 1);
        return LINKPOOL_ENOMEM;
    }
    link__widen(pool->names->hh.tbl, env);
    pool->n_names++;
    name->target = target;
    if ((name->host = host)) {
        name->next = host->names;
        host->names = name;
    }
    return 0;
}

void pool__name_remove(struct pool *pool, struct pool_name *name)
{
    const struct linkpool_env *env = pool->core.env;

    HASH_DEL(pool->names, name);
    pool->n_names--;
    link__release(env, name, sizeof *name + strlen(name->text) + 1);
}

void pool__names_forget(struct pool_host *host)
{
    while (host->names) {
        struct pool_name *name = host->names;
        host->names = name->next;
        pool__name_remove(pool__of(host), name);
    }
}
