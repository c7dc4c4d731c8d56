/* framed_ids.c - who waits for which answer: a table of chains. It grows with the requests under way and stays as it
 * is; without memory the chains get longer, and nothing fails. */
#include <string.h>

#include "link/framed_link.h"

void framed__ids_init(struct framed_ids *ids)
{
    ids->buckets = ids->few;
    ids->n_buckets = FRAMED_FEW;
}

static size_t bytes_of(unsigned n_buckets)
{
    return n_buckets * sizeof(struct framed_channel *);
}

void framed__ids_grow(struct framed_ids *ids, const struct linkpool_env *env)
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
            framed__ids_put(ids, channel);
        }
    if (old.buckets != ids->few)
        env->realloc(env->data, old.buckets, bytes_of(old.n_buckets), 0);
}

struct framed_channel *framed__ids_find(struct framed_ids *ids, uint32_t id)
{
    struct framed_channel *channel = *framed__ids_bucket(ids, id);

    while (channel && channel->id != id)
        channel = channel->next;
    return channel;
}

void framed__ids_free(struct framed_ids *ids, const struct linkpool_env *env)
{
    if (ids->buckets && ids->buckets != ids->few)
        env->realloc(env->data, ids->buckets, bytes_of(ids->n_buckets), 0);
    framed__ids_init(ids);
}
