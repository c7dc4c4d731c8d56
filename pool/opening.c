/* opening.c - which links are opened, when, and whose place they take.
 *
 * Whoever may want a link is put in `wanting` and looked at at the end of the turn, each line in turn for one attempt.
 * When there is none left, those that something has happened to since (`unseen`) are looked at all the same: a channel
 * may be free for them. The others wait for an attempt alone, however many they are.
 * A line wants one when leases wait in it that no attempt under way will serve; a host's own line also wants what is
 * kept up, and the probe of a host with a verdict. Bounds of the host make a line wait for news of the host; the pool's
 * attempts make it wait in `wanting`, the pool's total in `starving`, oldest first. */
#include <utlist.h>

#include "pool/internal.h"

static struct pool *pool_of(const struct pool_line *line)
{
    return line->host ? pool__of(line->host) : line->target->pool;
}

/* Nobody waits for it: it takes no other host's link, which might be kept up as well. */
static bool is_upkeep(const struct pool_line *line)
{
    return line->host && !line->n && !line->host->probe_due && !line->host->start_asked;
}

/* ---- the lines that want a link: those that may have one, and those that starve for it ---- */

static void enter_wanting(struct pool *pool, struct pool_line *line)
{
    if (!line->prev)
        DL_APPEND(pool->wanting, line);
    if (!pool__is_unseen(line))
        DL_APPEND2(pool->unseen, line, unseen_prev, unseen_next);
}

static void note_seen(struct pool *pool, struct pool_line *line)
{
    if (pool__is_unseen(line))
        DL_DELETE2(pool->unseen, line, unseen_prev, unseen_next);
    line->unseen_prev = NULL;
}

static void leave_wanting(struct pool *pool, struct pool_line *line)
{
    if (!line->prev)
        return;
    note_seen(pool, line);
    DL_DELETE(pool->wanting, line);
    line->prev = NULL;
}

/* The order of those who starve: leases by their tickets, and what is only kept up after all of them. */
static double rank(const struct pool *pool, const struct pool_line *line)
{
    if (is_upkeep(line))
        return INFINITY;
    return line->first ? (double)line->first->ticket : (double)pool->ticket;
}

static void enter_starving(struct pool *pool, struct pool_line *line)
{
    leave_wanting(pool, line);
    line->starving = (struct link_node){0};
    line->is_starving = true;
    link__heap_set(&pool->starving, &line->starving, rank(pool, line));
}

static void leave_starving(struct pool *pool, struct pool_line *line)
{
    if (!line->is_starving)
        return;
    link__heap_clear(&pool->starving, &line->starving);
    line->is_starving = false;
    line->unseen_prev = NULL;
}

void pool__want(struct pool_line *line)
{
    struct pool *pool = pool_of(line);

    if (pool->freed)
        return;
    if (line->is_starving && line->starving.due == INFINITY && !is_upkeep(line))
        leave_starving(pool, line); /* it has leases now, for whom room is made */
    if (!line->is_starving)
        enter_wanting(pool, line);
    link__later(&pool->core);
}

void pool__look_again(struct pool_line *line)
{
    leave_starving(pool_of(line), line);
    pool__want(line);
}

void pool__unwant(struct pool_line *line)
{
    struct pool *pool = pool_of(line);
    bool starved = line->is_starving;

    leave_starving(pool, line);
    /* What is kept up, and probes, are wanted without anybody in line: those are looked at once more. */
    if (!line->host)
        leave_wanting(pool, line);
    else if (starved)
        pool__want(line);
}

void pool__line_drop(struct pool *pool, struct pool_line *line)
{
    leave_starving(pool, line);
    leave_wanting(pool, line);
    link__timer_clear(&pool->core, &line->timer);
    link__heap_drop(&pool->starving);
    link__heap_drop(&pool->core.timers);
}

int pool__line_hold(struct pool *pool)
{
    if (link__heap_hold(&pool->starving, pool->core.env))
        return LINKPOOL_ENOMEM;
    if (link__heap_hold(&pool->core.timers, pool->core.env)) {
        link__heap_drop(&pool->starving);
        return LINKPOOL_ENOMEM;
    }
    return 0;
}

void pool__want_host(struct pool_host *host)
{
    pool__want(&host->line);
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        if (member->target->line.n)
            pool__want(&member->target->line);
}

void pool__look_again_at(struct pool_host *host)
{
    if (host->line.n)
        pool__look_again(&host->line);
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        if (member->target->line.n)
            pool__look_again(&member->target->line);
}

/* ---- who wants ---- */

double pool__used_until(const struct pool_target *target)
{
    double idle_timeout = (target->settings ? target->settings : target->pool->settings)->options.idle_timeout;

    if (target->used_at < 0 || target->draining || !target->picker->keeps_up)
        return -INFINITY;
    return idle_timeout > 0 ? target->used_at + idle_timeout : INFINITY;
}

double pool__kept_up_until(const struct pool_host *host)
{
    double latest = -INFINITY;

    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        if (pool__used_until(member->target) > latest)
            latest = pool__used_until(member->target);
    return latest;
}

unsigned pool__kept_up(const struct pool_host *host)
{
    unsigned min_links = host->pins || host->memberships ? pool__options(host)->min_links : 0;

    if (host->draining || pool__of(host)->draining)
        return 0;
    return min_links ? min_links : pool__now(pool__of(host)) < pool__kept_up_until(host);
}

/* The first of min_links, for which nobody waits, comes after a draw: programs that are started together, as at a
 * deploy, would all connect together. */
void pool__keep_up(struct pool_host *host)
{
    if (!pool__kept_up(host))
        return;
    if (pool__options(host)->min_links && !host->opened && host->keep_after <= pool__now(pool__of(host)))
        pool__spread_upkeep(host);
    pool__want(&host->line);
}

static bool upkeep_wants(const struct pool_host *host)
{
    unsigned live = pool__sockets(host) - host->n[LINK_DRAINING] + host->n[LINK_BACKOFF] + host->n[LINK_OFFLINE];

    if (pool__now(pool__of(host)) < host->keep_after || pool__of(host)->draining)
        return false;
    if ((host->start_asked && !live) || (host->n_replacing > pool__opening(host) && !host->draining))
        return true;
    return pool__kept_up(host) && !pool__enough_last(host, live, pool__kept_up(host));
}

static bool leases_want(const struct pool_line *line)
{
    return line->n > line->served_by;
}

static bool wants(const struct pool_line *line)
{
    if (line->host && (line->host->probe_due || upkeep_wants(line->host)))
        return true;
    return leases_want(line) || (line->n > 1 && line->target && line->target->picker->by_lease);
}

/* ---- may the host have another attempt? ---- */

/* Its peer takes nobody any more: it is in the way of those who wait, at its own host too. One that never took anybody
 * stays: the next would be like it. */
static bool is_in_the_way(const struct link *link)
{
    return link__is_shared(link) && link__is_full(link) && link->uses;
}

static struct link *link_in_the_way(const struct pool_host *host)
{
    struct link *link;

    DL_FOREACH (host->lists[PLACE_RESERVE], link)
        if (is_in_the_way(link))
            return link;
    return NULL;
}

static bool can_open(const struct pool_host *host, bool makes_way)
{
    if (host->probe_due) /* one that was sent away may be there still */
        return pool__sockets(host) - makes_way < pool__options(host)->max_links;
    if (host->lists[PLACE_RESTING] || host->holding || (host->failed && pool__opening(host)))
        return false; /* its probe goes first */
    return pool__sockets(host) - makes_way < pool__options(host)->max_links &&
           pool__opening(host) < host->connect_limit;
}

bool pool__can_open(const struct pool_host *host)
{
    return can_open(host, false);
}

/* Of a host that is full, the link that gives way to one for this lease: one in the way of all; for a lease that wants
 * an unused one, the coldest of the idle ones. */
static struct link *gives_way(const struct pool_host *host, const struct pool_lease *lease)
{
    if (!lease || pool__sockets(host) < pool__options(host)->max_links)
        return NULL;
    return lease->flags & POOL_FRESH && host->n_idle ? pool__coldest(host) : link_in_the_way(host);
}

static bool can_open_for(struct pool_host *host, const struct pool_lease *lease)
{
    if (pool__opening(host) >= (pool__of(host)->options.max_connecting + 1) / 2)
        return false; /* the other half is for the other hosts */
    return can_open(host, gives_way(host, lease));
}

/* A lease that wants an unused link: pickers prefer hosts that have none free, though those may not open just now. */
static struct pool_host *fresh_host(struct pool_target *target, const struct pool_lease *lease)
{
    for (size_t i = 0; i < target->pick.n; i++)
        if (!pool__is_down(target->hosts[i]) && pool__takes(target, lease, i) && can_open_for(target->hosts[i], lease))
            return target->hosts[i];
    return NULL;
}

/* Asks the picker until it names a host that may open, or one it has named before. */
static struct pool_host *picked(struct pool_target *target, const struct pool_lease *lease)
{
    int first = POOL_PICK_WAIT;

    for (size_t k = 0; k < target->pick.n; k++) {
        int i = pool__pick(target, lease);
        if (i < 0 || i == first)
            break;
        if (can_open_for(target->hosts[i], lease))
            return target->hosts[i];
        if (first < 0)
            first = i;
    }
    return lease && lease->flags & POOL_FRESH ? fresh_host(target, lease) : NULL;
}

/* One behind the first, whose host is another: an attempt a host at a time, and no link gives way to it. */
static struct pool_host *picked_for_others(struct pool_line *line)
{
    for (const struct pool_claim *claim = line->first ? line->first->next : NULL; claim; claim = claim->next) {
        int i = pool__pick(line->target, pool__lease(claim));
        struct pool_host *host = i >= 0 ? line->target->hosts[i] : NULL;
        if (host && !pool__opening(host) && !pool__free_link(host) && can_open_for(host, NULL))
            return host;
    }
    return NULL;
}

static const struct pool_lease *first_of(const struct pool_line *line)
{
    return line->first ? pool__lease(line->first) : NULL;
}

static struct pool_host *host_for(struct pool_line *line)
{
    const struct pool_lease *lease = first_of(line);
    struct pool_host *host;

    if (line->target) {
        host = leases_want(line) ? picked(line->target, lease) : NULL;
        return host || !line->target->picker->by_lease ? host : picked_for_others(line);
    }
    return can_open_for(line->host, lease) ? line->host : NULL;
}

/* ---- room in the pool ---- */

/* The node of the host whose idle link is coldest is set right as it comes up: leasing leaves it early. */
static struct pool_host *coldest_host(struct pool *pool)
{
    struct link_node *node;

    while ((node = link__heap_first(&pool->coldest))) {
        struct pool_host *host = (struct pool_host *)((char *)node - offsetof(struct pool_host, coldest));
        struct link *bottom = pool__coldest(host);
        if (!bottom)
            link__heap_clear(&pool->coldest, node);
        else if (node->due < bottom->idle_since)
            link__heap_set(&pool->coldest, node, bottom->idle_since);
        else
            return host;
    }
    return NULL;
}

bool pool__make_room(struct pool *pool, struct pool_host *but)
{
    bool had = but && link__node_is_set(&but->coldest);
    double due = had ? but->coldest.due : 0;

    if (had)
        link__heap_clear(&pool->coldest, &but->coldest);
    struct pool_host *host = coldest_host(pool);
    if (had)
        link__heap_set(&pool->coldest, &but->coldest, due);
    if (!host)
        return false;
    link__end(pool__coldest(host), LINK_MADE_ROOM, 0);
    return true;
}

static bool wants_fresh(const struct pool_line *line)
{
    return line->first && pool__lease(line->first)->flags & POOL_FRESH;
}

static struct pool_line *most_starved(struct pool *pool)
{
    struct link_node *node;

    while ((node = link__heap_first(&pool->starving))) {
        struct pool_line *line = (struct pool_line *)((char *)node - offsetof(struct pool_line, starving));
        double ticket = rank(pool, line);
        if (!wants(line))
            leave_starving(pool, line);
        else if (node->due < ticket)
            link__heap_set(&pool->starving, node, ticket);
        else
            return line;
    }
    return NULL;
}

bool pool__must_make_room(const struct link *link)
{
    const struct pool_host *host = pool__host_of(link);
    struct pool *pool = pool__of(host);
    const struct pool_line *line = most_starved(pool);
    bool has_room = !link__is_shared(link) || link__has_room(link);
    const struct pool_lease *own = line && has_room ? pool__oldest_taker(host) : NULL;

    if (!line || is_upkeep(line) || pool->n_links < pool->options.max_links)
        return false;
    if (line->host == host && !wants_fresh(line) && !is_in_the_way(link))
        return false;
    return !own || (line->first && line->first->ticket < pool__claim(own)->ticket);
}

void pool__link_gone(struct pool *pool)
{
    if (pool->starving.n || pool->wanting)
        link__later(&pool->core);
}

/* ---- opening ---- */

/* Its first lease may be another than when they fell free, or a winner that is back. */
static void serve_line(struct pool_line *line)
{
    if (line->target) {
        pool__serve_target(line->target);
    } else {
        pool__serve(line->host);
        pool__see_host(line->host);
    }
}

/* Each once, from the front to the back; serving one may take others out. What this makes wanted has the next turn. */
static void serve_unseen(struct pool *pool)
{
    struct pool_line *line;
    unsigned n;

    DL_COUNT2(pool->unseen, line, n, unseen_next);
    for (; n && (line = pool->unseen); n--) {
        note_seen(pool, line);
        serve_line(line);
        if (!pool__is_unseen(line) && !wants(line))
            leave_wanting(pool, line);
    }
}

enum outcome {
    OPENED,
    NOT_NOW,
    NO_ATTEMPT_LEFT,
    NO_LINK_LEFT
};

/* An attempt counts for the line that asked for it; one that is kept up, or a probe, for whoever waits for the host. */
static struct pool_line *line_to_serve(struct pool_host *host, struct pool_line *line)
{
    if (leases_want(line))
        return line;
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        if (leases_want(&member->target->line) &&
            pool__takes(member->target, pool__lease(member->target->line.first), member->index))
            return &member->target->line;
    return NULL;
}

static void serve_with(struct link *link, struct pool_line *line, uint32_t leases)
{
    link->channel.data = line;
    link->turn = line ? leases : 0;
    if (line)
        line->served_by += leases;
}

static uint32_t within(uint32_t n, uint32_t bound) /* 0: none */
{
    return bound && bound < n ? bound : n;
}

/* So many leases: its uses may run out before its room does, and all of that may not be ours to take. */
static uint32_t will_serve(const struct pool_host *host)
{
    const struct pool_host_options *options = pool__options(host);

    return within(within(host->expected_room, options->max_channels), options->max_uses);
}

/* Its next attempt is not begun yet: a link is made that waits for it, and takes nobody's place meanwhile. */
static bool pauses(const struct pool_host *host)
{
    return !host->lists[PLACE_RESTING] && host->not_before > pool__now(pool__of(host));
}

static void begin(struct pool_host *host, struct link *link, struct pool_line *line)
{
    struct pool *pool = pool__of(host);

    if (pauses(host)) {
        link__hold(link, host->not_before - pool__now(pool));
        return;
    }
    serve_with(link, line_to_serve(host, line), will_serve(host));
    host->tried_at = (uint32_t)pool->ticket;
    host->probe_due = host->start_asked = false;
    host->opened++;
    pool->opened++;
    bool held = link__state(link) == LINK_BACKOFF;
    link__open(link);
    if (held)
        pool__want_host(host); /* others waited for the spread, or the backoff, to pass */
}

/* Under way for what is kept up. */
static struct link *attempt_for_nobody(const struct pool_host *host)
{
    struct link *link;

    DL_FOREACH (host->lists[PLACE_OPENING], link)
        if (!link->channel.data)
            return link;
    return NULL;
}

static bool make_room_for(const struct pool_line *line, struct pool_host *host)
{
    struct link *link = link_in_the_way(host);

    if (is_upkeep(line))
        return false;
    if (!link)
        return pool__make_room(pool__of(host), wants_fresh(line) ? NULL : host);
    link__end(link, LINK_MADE_ROOM, 0);
    return true;
}

/* False: there is no link left in the pool. */
static bool has_place(const struct pool_line *line, struct pool_host *host)
{
    const struct pool *pool = pool__of(host);
    struct link *link;

    if (pauses(host))
        return true;
    if ((link = gives_way(host, first_of(line))))
        link__end(link, LINK_MADE_ROOM, 0);
    return pool->n_links < pool->options.max_links || make_room_for(line, host);
}

static enum outcome open_one(struct pool_line *line)
{
    struct pool *pool = pool_of(line);
    struct pool_host *host;
    struct link *link;

    serve_line(line);
    if (!wants(line))
        return NOT_NOW;
    if (pool->n_opening >= pool->options.max_connecting)
        return NO_ATTEMPT_LEFT; /* before its picker looks through all hosts for nothing */
    if (!(host = host_for(line)))
        return NOT_NOW;
    if (leases_want(line) && (link = attempt_for_nobody(host))) {
        serve_with(link, line, will_serve(host));
        return OPENED;
    }
    if (!has_place(line, host))
        return NO_LINK_LEFT;
    if (!(link = host->lists[PLACE_RESTING]) && !(link = pool__link_new(host))) {
        while (leases_want(line)) /* those that attempts under way will serve go on waiting */
            pool__fail(pool__lease(line->first->prev), LINKPOOL_ENOMEM);
        pool__pause_upkeep(host);
        return NOT_NOW;
    }
    begin(host, link, line);
    return OPENED;
}

/* Where there is room the oldest that starves, else the first that wants, and what is only kept up after all others.
 * It is taken out before it is looked at, so that it is looked at again if anything happens to it meanwhile. */
static struct pool_line *next_wanting(struct pool *pool)
{
    bool has_room = pool->n_links < pool->options.max_links && pool->n_opening < pool->options.max_connecting;
    struct pool_line *line = has_room ? most_starved(pool) : NULL;

    if (line && !(is_upkeep(line) && pool->wanting))
        leave_starving(pool, line);
    else if ((line = pool->wanting))
        leave_wanting(pool, line);
    return line;
}

static void return_to_front(struct pool *pool, struct pool_line *line)
{
    if (line->prev) /* it was wanted again meanwhile */
        DL_DELETE(pool->wanting, line);
    DL_PREPEND(pool->wanting, line);
}

void pool__open_wanted(struct pool *pool)
{
    struct pool_line *line;

    while ((line = next_wanting(pool)))
        switch (open_one(line)) {
        case OPENED: /* to the back: each in turn */
            pool__want(line);
            break;
        case NOT_NOW:
            break;
        case NO_LINK_LEFT:
            enter_starving(pool, line);
            break;
        case NO_ATTEMPT_LEFT: /* it is the first again */
            return_to_front(pool, line);
            serve_unseen(pool); /* those behind it may not want one at all */
            return;
        }
}

/* ---- whom an attempt serves ---- */

void pool__attempt_over(struct link *link)
{
    struct pool_line *line = link->channel.data;

    if (line)
        line->served_by -= link->turn;
    link->channel.data = NULL;
    link->turn = 0;
}

void pool__forget_line(struct pool_host *host, struct pool_line *line)
{
    struct link *link;

    DL_FOREACH (host->lists[PLACE_OPENING], link)
        if (link->channel.data == line)
            pool__attempt_over(link);
}
