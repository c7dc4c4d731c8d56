/* framed_ids.c - who waits for which answer: a table of chains. It grows with the requests under way and stays as it
 * is; without memory the chains get longer, and nothing fails. */
#include <string.h>

#include "link/framed_link.h"

enum {
    LONG_CHAINS = 2 /* requests a bucket from which on it grows */
};

void framed__ids_init(struct framed_ids *ids)
{
    ids->buckets = ids->few;
    ids->n_buckets = FRAMED_FEW;
}

static struct framed_channel **bucket_of(struct framed_ids *ids, uint32_t id)
{
    return &ids->buckets[id & (ids->n_buckets - 1)];
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

LINK_RARE static void grow(struct framed_ids *ids, const struct linkpool_env *env)
{
    struct framed_ids old = *ids;
    struct framed_channel **more = env->realloc(env->data, NULL, 0, bytes_of(2 * old.n_buckets));

    if (!more)
        return;
    memset(more, 0, bytes_of(2 * old.n_buckets));
    ids->buckets = more;
    ids->n_buckets *= 2;
    for (unsigned i = 0; i < old.n_buckets; i++)
        for (struct framed_channel *channel = old.buckets[i], *next; channel; channel = next) {
            next = channel->next;
            put(ids, channel);
        }
    if (old.buckets != ids->few)
        env->realloc(env->data, old.buckets, bytes_of(old.n_buckets), 0);
}

void framed__ids_add(struct framed_ids *ids, const struct linkpool_env *env, struct framed_channel *channel)
{
    if (ids->n >= LONG_CHAINS * ids->n_buckets)
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
    if (ids->buckets && ids->buckets != ids->few)
        env->realloc(env->data, ids->buckets, bytes_of(ids->n_buckets), 0);
    framed__ids_init(ids);
}
