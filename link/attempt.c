/* attempt.c - handles of attempts, for outside code that calls up later: a library's callback, a protocol's timer.
 *
 * A handle is a number, looked up: it never points at what may be gone. Only attempts that are asked for are in the
 * table, so that plain links pay nothing. */
#include "link/internal.h"
#include "link/table.h"

struct link_attempt_entry {
    uint64_t id;
    struct link *link;
    UT_hash_handle hh;
};

static struct link_attempt_entry *find(const struct link_core *core, uint64_t id)
{
    struct link_attempt_entry *entry;

    HASH_FIND(hh, core->attempts, &id, sizeof id, entry);
    return entry;
}

static struct link_attempt keep(struct link *link)
{
    struct link_core *core = link__core(link);
    struct link_attempt none = {core->driver, 0}, attempt = {core->driver, link->fsm.generation};

    if (link->bits & LINK_KEPT)
        return attempt;
    if (!link__is_open(link))
        return none;
    const struct linkpool_env *env = core->env;
    struct link_attempt_entry *entry = link__alloc(env, sizeof *entry);
    if (!entry)
        return none;
    entry->id = attempt.id;
    entry->link = link;
    HASH_ADD(hh, core->attempts, id, sizeof entry->id, entry);
    if (!entry->hh.tbl) {
        link__release(env, entry, sizeof *entry);
        return none;
    }
    link__set_bits(link, 0, LINK_KEPT);
    return attempt;
}

static struct link *look_up(struct link_attempt attempt)
{
    struct link_core *core = attempt.driver->owner;
    struct link_attempt_entry *entry = core && attempt.id ? find(core, attempt.id) : NULL;

    if (!entry && core)
        core->counts.stale++;
    return entry ? entry->link : NULL;
}

void link__forget_attempt(struct link *link)
{
    struct link_core *core = link__core(link);
    const struct linkpool_env *env = core->env;
    struct link_attempt_entry *entry = find(core, link->fsm.generation);

    HASH_DEL(core->attempts, entry);
    link__release(env, entry, sizeof *entry);
}

struct link_attempt transport_attempt(struct transport_link *tl)
{
    return keep(tl->link);
}
struct link_attempt protocol_attempt(struct protocol_link *pl)
{
    return keep(pl->link);
}

struct transport_link *transport_attempt_link(struct link_attempt attempt)
{
    struct link *link = look_up(attempt);

    return link ? &link->transport : NULL;
}

struct protocol_link *protocol_attempt_link(struct link_attempt attempt)
{
    struct link *link = look_up(attempt);

    return link ? &link->protocol : NULL;
}
