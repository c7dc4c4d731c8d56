/* core.c - what all links of one driver share: the clock's alarm, the end of a turn, numbers, and when memory may go.
 */
#include <string.h>
#include <utlist.h>

#include "link/internal.h"

static struct link *of_timer(struct link_node *node)
{
    return (struct link *)((char *)node - offsetof(struct link, timer));
}

static bool opening_is_overdue(const struct link *link)
{
    return link__now(link__core(link)) >= link->since + link->owner->terms->connect_timeout;
}

/* transport_retry(): the timer is the deadline's again, unless the transport asks for another try. */
static void try_again(struct link *link)
{
    link__timer_set(link__core(link), &link->timer, link->since + link->owner->terms->connect_timeout);
    link__wake(link, 0);
}

static void link_rang(struct link *link)
{
    if (link->interest & LINKPOOL_UNWATCHED) { /* see link__watch_or_end() */
        link__end(link, LINK_NO_MEMORY, 0);
        return;
    }
    switch (link__state(link)) {
    case LINK_CONNECTING:
        if (opening_is_overdue(link))
            link__end(link, LINK_TIMED_OUT, 0);
        else
            try_again(link);
        break;
    case LINK_HANDSHAKING:
    case LINK_RESETTING:
        link__end(link, LINK_TIMED_OUT, 0);
        break;
    case LINK_READY:
        if (link__heartbeat_rang(link))
            link__arm_ready(link);
        break;
    case LINK_DRAINING:
        link__end(link, (enum link_reason)link->retire, 0);
        break;
    case LINK_BACKOFF:
        link__core(link)->keeper->retry(link);
        break;
    default: /* no timer runs in the others */
        break;
    }
}

static void on_alarm(struct driver *driver)
{
    struct link_core *core = driver->owner;
    struct link_node *node;

    link__enter(core);
    core->alarm = INFINITY;
    /* Only what was due when it rang: a timer set to "now" meanwhile has its turn after the next poll. */
    for (uint32_t n = core->timers.n; n && (node = link__heap_first(&core->timers)) && node->due <= link__now(core);
         n--) {
        link__heap_clear(&core->timers, node);
        if (node->kind == LINK_NODE_LINK)
            link_rang(of_timer(node));
        else
            core->keeper->rang(core, node);
    }
    if ((node = link__heap_first(&core->timers)) && node->due < core->alarm)
        driver->ops->alarm(driver, core->alarm = node->due);
    link__leave(core);
}

/* What protocols have gathered goes last: what is told meanwhile may send more. */
static void let_write(struct link_core *core)
{
    while (core->gathering) {
        struct link *link = link__of_shared(core->gathering);
        link__gathers_no_more(link);
        link->owner->protocol->input(&link->protocol, 0);
    }
}

static void on_later(struct driver *driver)
{
    struct link_core *core = driver->owner;

    link__enter(core);
    core->later_asked = false;
    core->keeper->turn(core);
    let_write(core);
    link__leave(core);
}

static void on_slept(struct driver *driver)
{
    struct link_core *core = driver->owner;

    link__enter(core);
    core->keeper->slept(core);
    link__leave(core);
}

void link__core_init(
    struct link_core *core, struct driver *driver, const struct linkpool_env *env, const struct link_keeper *keeper)
{
    *core = (struct link_core){.driver = driver, .env = env, .keeper = keeper, .alarm = INFINITY};
    driver->owner = core;
    driver->on_alarm = on_alarm;
    driver->on_later = on_later;
    driver->on_slept = on_slept;
}

static void free_dead(struct link_core *core)
{
    struct link *kept = NULL;

    while (core->dead) {
        struct link *link = core->dead;
        core->dead = link->next;
        if (link->tells) {
            link->next = kept;
            kept = link;
        } else {
            link__free_memory(link);
        }
    }
    core->dead = kept;
}

void link__core_free(struct link_core *core)
{
    free_dead(core);
    link__heap_free(&core->timers, core->env);
    link__blocks_free(&core->blocks, core->env);
    core->driver->ops->alarm(core->driver, INFINITY);
    core->driver->owner = NULL;
    core->driver->on_alarm = core->driver->on_later = core->driver->on_slept = NULL;
}

void link__left(struct link_core *core)
{
    if (core->dead)
        free_dead(core);
    if (core->keeper->over(core))
        core->keeper->gone(core);
}

void link__timer_set(struct link_core *core, struct link_node *node, double due)
{
    if (due == INFINITY) {
        link__heap_clear(&core->timers, node);
        return;
    }
    link__heap_set(&core->timers, node, due);
    if (due < core->alarm)
        core->driver->ops->alarm(core->driver, core->alarm = due);
}

void link__timer_clear(struct link_core *core, struct link_node *node)
{
    link__heap_clear(&core->timers, node);
}

void link__ask_later(struct link_core *core)
{
    core->later_asked = true;
    core->driver->ops->later(core->driver);
}

void link__gathers(struct link *link)
{
    struct link_core *core = link__core(link);
    struct link_shared *shared = link__shared(link);

    if (shared->prev)
        return;
    DL_APPEND(core->gathering, shared);
    link__later(core);
}

void link__gathers_no_more(struct link *link)
{
    struct link_shared *shared = link__shared(link);

    if (!shared->prev)
        return;
    DL_DELETE(link__core(link)->gathering, shared);
    shared->prev = NULL;
}

void *link__alloc(const struct linkpool_env *env, size_t size)
{
    void *memory = env->realloc(env->data, NULL, 0, size);

    return memory ? memset(memory, 0, size) : NULL;
}

void link__release(const struct linkpool_env *env, void *memory, size_t size)
{
    if (memory)
        env->realloc(env->data, memory, size, 0);
}

double link__draw(const struct link_core *core)
{
    return (double)(core->env->random(core->env->data) >> 11) *
           0x1p-53; /* 53 bits are all a double in [0, 1) tells apart */
}
