/* framed_ids.c - who waits for which answer: a table of chains. It grows with the requests under way and stays as it
 * is; without memory the chains get longer, and nothing fails. */
#include <string.h>

#include "link/framed_link.h"

enum {
    LONG_CHAINS = 2 /* requests a bucket from which on it grows */
};

static struct framed_channel **bucket_of(struct framed_ids *ids, uint32_t id)
{
    return ids->more ? &ids->more[id & (ids->n_buckets - 1)] : &ids->few[id & (FRAMED_FEW - 1)];
}

static void put(struct framed_ids *ids, struct framed_channel *channel)
{
    struct framed_channel **bucket = bucket_of(ids, channel->id);

    channel->next = *bucket;
    *bucket = channel;
}

static size_t bytes_of(unsigned n_buckets)
{
    return n_buckets * sizeof(struct framed_channel *);
}

static void grow(struct framed_ids *ids, const struct linkpool_env *env)
{
    struct framed_ids old = *ids;
    unsigned n_old = old.more ? old.n_buckets : FRAMED_FEW, n_new = 4 * n_old;
    struct framed_channel **more = env->realloc(env->data, NULL, 0, bytes_of(n_new));

    if (!more)
        return;
    memset(more, 0, bytes_of(n_new));
    ids->more = more;
    ids->n_buckets = n_new;
    for (unsigned i = 0; i < n_old; i++)
        for (struct framed_channel *channel = old.more ? old.more[i] : old.few[i], *next; channel; channel = next) {
            next = channel->next;
            put(ids, channel);
        }
    if (old.more)
        env->realloc(env->data, old.more, bytes_of(n_old), 0);
}

void framed__ids_add(struct framed_ids *ids, const struct linkpool_env *env, struct framed_channel *channel)
{
    unsigned n_buckets = ids->more ? ids->n_buckets : FRAMED_FEW;

    if (ids->n >= LONG_CHAINS * n_buckets)
        grow(ids, env);
    put(ids, channel);
    ids->n++;
}

struct framed_channel *framed__ids_find(struct framed_ids *ids, uint32_t id)
{
    struct framed_channel *channel = *bucket_of(ids, id);

    while (channel && channel->id != id)
        channel = channel->next;
    return channel;
}

struct framed_channel *framed__ids_take(struct framed_ids *ids, uint32_t id)
{
    for (struct framed_channel **at = bucket_of(ids, id); *at; at = &(*at)->next)
        if ((*at)->id == id) {
            struct framed_channel *channel = *at;
            *at = channel->next;
            channel->next = NULL;
            ids->n--;
            return channel;
        }
    return NULL;
}

void framed__ids_free(struct framed_ids *ids, const struct linkpool_env *env)
{
    if (ids->more)
        env->realloc(env->data, ids->more, bytes_of(ids->n_buckets), 0);
    ids->more = NULL;
}
