/* verdict.c - what a host's failures mean, and what follows the end of a link.
 *
 * One verdict a host. With a READY link it is never failing; without one, the failure of the last attempt under way is
 * the verdict, and one probe tries again after each backoff for as long as somebody asks. What died together is one
 * event: attempts and links begun before the last failure belong to it. */
#include "pool/internal.h"

static bool was_opening(const struct link_end *end)
{
    return end->from == LINK_CONNECTING || end->from == LINK_HANDSHAKING;
}

static bool was_ready(const struct link_end *end)
{
    return end->from == LINK_READY || end->from == LINK_RESETTING;
}

/* It had come up: its time to prove itself ran. */
static bool was_up(const struct link_end *end)
{
    return was_ready(end) || end->from == LINK_DRAINING;
}

/* The link counts as what it was until its state has moved. */
static unsigned other_attempts(const struct pool_host *host, const struct link_end *end)
{
    return pool__opening(host) - was_opening(end);
}

static bool others_are_ready(const struct pool_host *host, const struct link_end *end)
{
    return host->n[LINK_READY] + host->n[LINK_RESETTING] - was_ready(end);
}

void pool__keep_after(struct pool_host *host, double wait)
{
    double due = pool__now(pool__of(host)) + wait;

    if (host->keep_after < due)
        host->keep_after = due;
    pool__arm_host(host);
}

/* Seconds until what is kept up is tried again where memory or room was short. */
static const double upkeep_pause = 0.25;

void pool__pause_upkeep(struct pool_host *host)
{
    pool__keep_after(host, upkeep_pause);
}

static void spread(struct pool_host *host, bool leases_too)
{
    struct pool *pool = pool__of(host);
    double wait = host->owner.terms->backoff.reconnect_spread * link__draw(&pool->core);

    if (leases_too && !(host->roomless && host->not_before > pool__now(pool) + wait))
        host->not_before = pool__now(pool) + wait;
    pool__keep_after(host, wait);
}

void pool__spread_upkeep(struct pool_host *host)
{
    spread(host, false);
}

/* ---- the opening limit ---- */

static void set_limit(struct pool_host *host, unsigned limit)
{
    host->connect_limit = (uint16_t)limit;
    host->successes = 0;
    host->brisk = false;
}

static void lower_limit(struct pool_host *host)
{
    double now = pool__now(pool__of(host));

    if (host->failed || now - host->halved_at < host->owner.terms->connect_timeout)
        return; /* a probe says nothing of load; and one wave of time-outs is one event */
    host->halved_at = now;
    set_limit(host, host->connect_limit > 1 ? host->connect_limit / 2 : 1);
}

/* What it can take was learned of a server that is gone. A few attempts tell whether the next is there; up to half of
 * what the last could take, the limit comes back fast. */
static void begin_limit_anew(struct pool_host *host)
{
    unsigned first = pool__options(host)->first_connecting, half = host->connect_limit / 2;

    if (host->connect_limit <= first)
        return;
    set_limit(host, first);
    if (half > first) {
        host->brisk = true;
        host->successes = (uint16_t)half;
    }
}

static void raise_limit(struct pool_host *host)
{
    if (host->connect_limit >= pool__options(host)->max_connecting)
        return;
    if (host->brisk) {
        if (++host->connect_limit >= host->successes)
            set_limit(host, host->connect_limit);
    } else if (++host->successes >= host->connect_limit) {
        set_limit(host, host->connect_limit + 1u);
    }
}

/* ---- failure ---- */

static bool has_waiters(const struct pool_host *host)
{
    if (host->line.n)
        return true;
    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        if (member->target->line.n)
            return true;
    return false;
}

/* What has begun by now, and what is READY by now, fails for reasons of before. */
static void count_to_here(struct pool_host *host)
{
    host->failed_attempts_to = host->owner.core->serial;
    host->counted_at = link__now(host->owner.core);
}

/* An attempt that came up after the last failure has told something new: its end is another event. */
static bool belongs_to_the_last_failure(const struct pool_host *host, const struct link *link, bool ready)
{
    return link->fsm.generation <= host->failed_attempts_to && (!ready || link->since <= host->counted_at);
}

/* Counts one more failure. Answers the backoff's delay. */
static double count_failure(struct pool_host *host, const struct link_end *end)
{
    const struct link_core *core = host->owner.core;
    double now = link__now(core), delay;

    if (!host->failures++) {
        host->first_failure = now;
        host->last_delay = 0;
        host->died_young = false;
    }
    host->died_young = host->died_young || was_up(end);
    count_to_here(host);
    delay = backoff_delay(&host->owner.terms->backoff,
        &(struct backoff_history){.attempt = host->failures,
            .elapsed = now - host->first_failure,
            .last_delay = host->last_delay,
            .reason = (int)end->reason},
        link__draw(core));
    host->last_delay = delay > 0 ? (float)delay : 0;
    return delay;
}

/* Seconds: a policy that says "no more" beside a READY link cannot take the host offline; it is tried this seldom. */
static const double no_more_retry = 60;

static struct link_next failure(struct link *link, struct pool_host *host, const struct link_end *end)
{
    struct link_next rest = {LINK_EV_END_REST, 0};
    bool belongs_to_the_last = belongs_to_the_last_failure(host, link, was_up(end));
    double delay;

    if (other_attempts(host, end)) { /* the last of them is the verdict */
        host->holding = true;
        if (was_up(end) &&
            !belongs_to_the_last) { /* it was up: those may come up as well, and the gaps grow all the same */
            delay = count_failure(host, end);
            pool__keep_after(host, delay < 0 ? no_more_retry : delay);
            if (!link->uses && delay > 0) /* it served nobody who waits: the next would not either */
                host->not_before = pool__now(pool__of(host)) + delay;
        }
        return rest;
    }
    if (host->lists[PLACE_RESTING]) /* its probe waits already */
        return rest;
    if (belongs_to_the_last) {
        spread(host, !others_are_ready(host, end));
        return rest;
    }
    delay = count_failure(host, end);
    host->failed = true;
    begin_limit_anew(host);
    if (delay < 0)
        return (struct link_next){LINK_EV_END_OUT, 0};
    return (struct link_next){LINK_EV_END_RETRY, delay};
}

static void note_failure(struct pool_host *host, const struct link_end *end)
{
    link__note_end(&host->owner, end->reason, end->system_errno);
    host->failed_at = pool__now(pool__of(host));
    host->failures_seen++;
    if (was_up(end) && !others_are_ready(host, end))
        begin_limit_anew(host);
}

static bool is_leaving(const struct pool_host *host)
{
    const struct pool *pool = pool__of(host);

    return (pool->draining || host->draining) && !has_waiters(host);
}

/* The wait for the next try, and the verdict with it, need a link: this one is still open. */
static void begin_wait(struct pool_host *host, double delay)
{
    struct link *probe = pool__link_new(host);

    if (probe) {
        link__hold(probe, delay);
        return;
    }
    host->failed = false; /* nobody would take it back */
    host->not_before = pool__now(pool__of(host)) + delay;
    pool__keep_after(host, delay);
}

void pool__sent_away(struct link *link, enum link_reason reason)
{
    struct pool_host *host = pool__host_of(link);
    struct link_end end = {.kind = LINK_END_FAILURE, .reason = reason, .from = link__state(link)};

    note_failure(host, &end);
    if (is_leaving(host))
        return;
    struct link_next next = failure(link, host, &end);
    if (next.event != LINK_EV_END_REST) /* while it is used the host is not given up */
        begin_wait(host, next.event == LINK_EV_END_OUT ? no_more_retry : next.delay);
}

static struct link_next what_follows(struct link *link, const struct link_end *end)
{
    struct pool_host *host = pool__host_of(link);
    struct link_next rest = {LINK_EV_END_REST, 0};

    if (!other_attempts(host, end))
        host->holding = false; /* nobody is left to tell */
    /* No fault of the host's: an idle link gives its descriptor to those who wait, and the attempt is made again. */
    if (end->from == LINK_CONNECTING && end->reason == LINK_NO_DESCRIPTORS && link->channel.data &&
        pool__make_room(pool__of(host), NULL))
        return rest;
    if (end->kind != LINK_END_QUIET)
        note_failure(host, end);
    if (was_opening(end) && end->reason == LINK_TIMED_OUT)
        lower_limit(host);
    if (is_leaving(host))
        return rest;
    switch (end->kind) {
    case LINK_END_QUIET:
        if (end->from != LINK_DRAINING && (end->reason == LINK_CLOSED_BY_PEER || end->reason == LINK_UNEXPECTED_DATA))
            spread(host, false); /* of one that drained the next was looked for then */
        return rest;
    case LINK_END_LOSS:
        spread(host, !others_are_ready(host, end));
        return rest;
    default:
        return failure(link, host, end);
    }
}

/* A verdict lasts for as long as a link carries it, the one that waits for its retry or makes it. */
struct link_next pool__ended(struct link *link, const struct link_end *end)
{
    struct pool_host *host = pool__host_of(link);
    struct link_next next = what_follows(link, end);

    if (next.event == LINK_EV_END_REST && !host->lists[PLACE_RESTING] && !other_attempts(host, end))
        host->failed = false; /* nobody would take it back */
    return next;
}

/* ---- success ---- */

void pool__succeeded(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    host->failed = host->holding = false;
    if (!host->failures && !host->roomless)
        host->not_before = 0;
    host->start_asked = false;
    host->connected++;
    raise_limit(host);
    if (host->failures && host->died_young && host->n[LINK_READY] + host->n[LINK_RESETTING] <= 1 &&
        host->keep_after <= link__now(host->owner.core))
        pool__keep_after(host, host->last_delay); /* so it was before it died: it is to last a little first */
}

void pool__proven(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    if (!belongs_to_the_last_failure(host, link, true))
        host->failures = 0;
}

/* ---- the probe ---- */

static bool is_later(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static bool is_asked_for(const struct pool_host *host)
{
    if (is_later(host->asked_at, host->tried_at) || pool__kept_up(host) || has_waiters(host))
        return true;
    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        if (is_later(member->target->asked_at, host->tried_at))
            return true;
    return false;
}

/* The verdict is forgotten, and the link that carried it. */
static void forget(struct pool_host *host)
{
    struct link *link = host->lists[PLACE_RESTING];

    host->failed = host->holding = host->probe_due = false;
    if (link) {
        link__stop(link, LINK_STOPPED);
        link__free(link);
    }
    pool__host_changed(host);
}

/* ---- links that can carry nobody ---- */

/* It came up: no failure, and no verdict. But who waits is not served, and the next would be like it. The first of them
 * says nothing of the next, which may lead to another server; those under way as the pause began belong to it. */
static void count_roomless(struct pool_host *host)
{
    double now = pool__now(pool__of(host)), delay;

    if (host->roomless && now < host->not_before)
        return;
    if (!host->roomless) {
        host->roomless = 1;
        if (!host->failures) {
            host->first_failure = now;
            host->last_delay = 0;
        }
        return;
    }
    if (host->roomless < 63)
        host->roomless++;
    delay = backoff_delay(&host->owner.terms->backoff,
        &(struct backoff_history){.attempt = host->roomless - 1u,
            .elapsed = now - host->first_failure,
            .last_delay = host->last_delay,
            .reason = LINK_NO_REASON},
        link__draw(host->owner.core));
    host->last_delay = delay > 0 ? (float)delay : 0;
    host->not_before = now + (delay < 0 ? no_more_retry : delay);
}

/* It has room: others may have it as well. A wait that a failure began goes on. */
static void end_roomless(struct pool_host *host)
{
    if (!host->roomless)
        return;
    host->roomless = 0;
    if (host->failures)
        return;
    host->not_before = 0;
    if (host->n[LINK_BACKOFF] && !host->failed)
        forget(host);
}

void pool__see_room(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    if (link__shared(link)->said)
        end_roomless(host);
    else if (link->since >= pool__now(pool__of(host))) /* it is said once a link: as it comes up */
        count_roomless(host);
}

void pool__retry(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    if (!is_asked_for(host)) {
        forget(host);
        pool__want_host(host);
        return;
    }
    host->probe_due = true;
    pool__want_host(host);
}

void pool__reset_host_backoff(struct pool_host *host)
{
    host->failures = 0;
    host->roomless = 0;
    count_to_here(host);
    host->not_before = host->keep_after = 0;
    if (!host->n[LINK_OFFLINE] && (host->n[LINK_BACKOFF] || host->failed))
        forget(host);
    pool__want_host(host);
}

void pool__begin_anew(struct pool_host *host)
{
    unsigned first = pool__options(host)->first_connecting;
    double pending = host->not_before;

    pool__reset_host_backoff(host);
    if (host->connect_limit < first) /* it was lowered by what is in doubt */
        set_limit(host, first);
    spread(host, true);
    if (pending > pool__now(pool__of(host)) && pending < host->not_before)
        host->not_before = pending; /* many changes do not put it off */
}

void pool__bring_back(struct pool_host *host)
{
    host->failed = host->failed && host->lists[PLACE_RESTING];
    host->holding = host->holding && pool__opening(host);
    host->failures = 0;
    host->roomless = 0;
    count_to_here(host);
    host->not_before = host->keep_after = 0;
    if (host->n[LINK_OFFLINE])
        forget(host);
    host->start_asked = !pool__has_ready(host);
    pool__host_changed(host);
    pool__want_host(host);
}
