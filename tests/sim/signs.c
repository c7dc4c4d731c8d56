/* signs.c - signs of life: a silent link is asked, in its time and once at a time, and is given up in its time; one
 * that has missed an answer is lent only where none else could serve. */
#include <math.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* In our own words, as the policy's comment says. */
static double least_interval(const struct heartbeat_policy *policy, double eased)
{
    return (policy->max > 0 ? policy->min : policy->interval) * (1 - policy->jitter) * eased;
}

static double longest_silence(const struct heartbeat_policy *policy, double eased)
{
    double interval = (policy->max > 0 ? policy->max : policy->interval) * eased;

    return interval + policy->misses * policy->timeout + (policy->misses - 1) * policy->watch_interval;
}

void signs__heard(struct sim *s, const struct link *link)
{
    struct seen_link *seen = sim__seen(s, link->id);
    const struct heartbeat_policy *policy = &link->owner->terms->heartbeat;
    double now = testing_now(s->t);

    if (seen->pinged_at > seen->heard_at && now == seen->pinged_at + policy->timeout)
        s->rare.n[RARE_HEARD_AS_MISSED]++;
    if (seen->pinged_at > seen->heard_at && now > seen->pinged_at + policy->timeout)
        s->rare.n[RARE_HEARD_AGAIN]++;
    seen->heard_at = now;
}

/* It is asked: not while one holder has all of it, not while another answer is awaited, not too soon. */
void signs__pinged(struct sim *s, const struct link *link)
{
    struct seen_link *seen = sim__seen(s, link->id);
    const struct heartbeat_policy *policy = &link->owner->terms->heartbeat;
    double now = testing_now(s->t), slack = 1e-9 * now, heard = later(seen->heard_at, seen->ready_at);

    HOLDS(s, link__state(link) == LINK_READY);
    HOLDS(s, policy->interval > 0);
    HOLDS(s, link__is_shared(link) || !seen->held);
    if (link__is_shared(link) && seen->changes == s->pool->network_changes) { /* after a change: at once */
        double missed = seen->pinged_at + policy->timeout + policy->watch_interval, silent;
        silent = heard + least_interval(policy, 1);
        if (seen->pinged_at > heard)
            HOLDS(s, now >= missed - slack);
        else if (seen->pinged_at == heard) /* in one turn: who knows which came first */
            HOLDS(s, now >= missed - slack || now >= silent - slack);
        else
            HOLDS(s, now >= silent - slack);
    }
    seen->changes = s->pool->network_changes;
    seen->pinged_at = now;
}

/* From when on its silence counts against it. */
static double silent_since(const struct sim *s, const struct link *link, const struct seen_link *seen)
{
    double since = later(seen->ready_at, link__heartbeat(link)->heard_at);

    since = later(since, s->keys[seen->key].terms_at);
    since = later(since, seen->asked_again);
    since = later(since, s->jumped_to);
    since = later(since, s->changed_at); /* then it was asked anew, and that answer has its whole time */
    return link__is_shared(link) ? since : later(since, link->idle_since);
}

static void note_drain(const struct sim *s, const struct link *link)
{
    struct seen_link *seen = sim__seen((struct sim *)s, link->id);

    if (seen->unasked && !link->is_unasked)
        seen->asked_again = testing_now(s->t);
    seen->unasked = link->is_unasked;
}

/* One that had missed an answer by an older policy is asked once more, when that is due by the new one. */
static double asked_once_more(const struct sim *s, const struct link *link, const struct seen_link *seen)
{
    const struct heartbeat_policy *policy = &link->owner->terms->heartbeat;

    if (s->keys[seen->key].terms_at <= link__heartbeat(link)->heard_at)
        return 0;
    return policy->timeout + policy->watch_interval; /* the time of the last one counts, by the new policy too */
}

void signs__check(struct sim *s, const struct link *link, const struct seen_link *seen)
{
    const struct heartbeat_policy *policy = &link->owner->terms->heartbeat;
    double now = testing_now(s->t), slack = 1e-9 * now;

    note_drain(s, link);
    if (s->changes != s->pool->network_changes) {
        s->changes = s->pool->network_changes;
        s->changed_at = now;
    }
    if (!(link->bits & LINK_HEARS) || link__state(link) != LINK_READY || !link->owner->protocol->ping)
        return;
    if (link__is_shared(link)) /* what we wrote is no sign of life */
        HOLDS(s, link__heartbeat(link)->heard_at <= later(seen->heard_at, seen->ready_at));
    if (link->is_unasked || policy->interval <= 0 || (!link__is_shared(link) && link__held(link)))
        return;
    HOLDS(s, link__node_is_set(&link->timer) && link->timer.due <= link__heartbeat_due(link) + slack);
    HOLDS(s, now <= silent_since(s, link, seen) + longest_silence(policy, 1) + asked_once_more(s, link, seen) + slack);
}

/* Another that has missed nothing, and has room? */
static bool has_better(const struct link *link)
{
    const struct pool_host *host = pool__host_of(link);

    for (const struct link *other = NULL; (other = pool_host_next_link(host, other));)
        if (other != link && link__state(other) == LINK_READY && !other->retire && !link__is_suspect(other) &&
            link__has_room(other))
            return true;
    return false;
}

void signs__lent(struct sim *s, const struct link *link)
{
    HOLDS(s, link__is_shared(link) || !link__owes(link));
    HOLDS(s, !link__is_doubted(link));
    if (!link__is_suspect(link))
        return;
    s->rare.n[RARE_SUSPECT_LENT]++;
    HOLDS(s, !has_better(link));
}

/* It has its channel within pool_call(). */
void signs__lent_to_call(struct sim *s, const struct caller *caller)
{
    const struct pool_lease *lease = &caller->call->lease;

    if (lease->channel)
        signs__lent(s, channel_link(lease->channel));
}

void signs__policy(struct sim *s, struct heartbeat_policy *policy)
{
    static const struct heartbeat_policy *const presets[] = {
        &heartbeat_none, &heartbeat_default, &heartbeat_adaptive, &heartbeat_edge};
    unsigned which = below(s, 8);

    *policy = *presets[which < 4 ? which : 1];
    if (which < 4)
        return;
    policy->interval = sim__spread(s, 0.01, which < 6 ? 0.1 : 5);
    policy->timeout = sim__spread(s, 0.01, which < 6 ? 0.1 : 2);
    policy->misses = 1 + below(s, 3);
    policy->watch_interval = once_in(s, 2) ? 0 : sim__spread(s, 0.01, 1);
    if (which == 7) {
        policy->min = sim__spread(s, 0.01, 2);
        policy->max = policy->min * 4;
    }
}
