/* watch.c - looks on: each move of a link is one that the table has, goes on from the last, and comes in its time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

/* What may follow what, in our own words: a table that was changed would agree with itself. */
static const uint16_t follows[LINK_STATES] = {
    [LINK_IDLE] = 1 << LINK_CONNECTING | 1 << LINK_BACKOFF | 1 << LINK_CLOSED,
    [LINK_CONNECTING] = 1 << LINK_HANDSHAKING | 1 << LINK_BACKOFF | 1 << LINK_IDLE | 1 << LINK_OFFLINE,
    [LINK_HANDSHAKING] = 1 << LINK_READY | 1 << LINK_BACKOFF | 1 << LINK_IDLE | 1 << LINK_OFFLINE,
    [LINK_READY] = 1 << LINK_RESETTING | 1 << LINK_DRAINING | 1 << LINK_BACKOFF | 1 << LINK_IDLE | 1 << LINK_OFFLINE,
    [LINK_RESETTING] = 1 << LINK_READY | 1 << LINK_BACKOFF | 1 << LINK_IDLE | 1 << LINK_OFFLINE,
    [LINK_DRAINING] = 1 << LINK_BACKOFF | 1 << LINK_IDLE | 1 << LINK_OFFLINE,
    [LINK_BACKOFF] = 1 << LINK_CONNECTING | 1 << LINK_IDLE,
    [LINK_OFFLINE] = 1 << LINK_CONNECTING | 1 << LINK_IDLE,
    [LINK_CLOSED] = 0,
};

struct seen_link *sim__seen(const struct sim *s, uint64_t id)
{
    struct seen_link *seen = s->links[id % LINK_BUCKETS];

    while (seen && seen->id != id)
        seen = seen->next;
    return seen;
}

static struct seen_link *seen_link(struct sim *s, const struct link_transition *move, const struct pool_host *host)
{
    struct seen_link *seen = sim__seen(s, move->link);
    struct seen_link **bucket = &s->links[move->link % LINK_BUCKETS];

    if (seen)
        return seen;
    HOLDS(s, move->from == LINK_IDLE); /* a link begins at rest */
    if (!(seen = calloc(1, sizeof *seen)))
        abort();
    seen->id = move->link;
    seen->key = sim__key_of(s, host);
    HOLDS(s, seen->key >= 0);
    LL_PREPEND(*bucket, seen);
    s->n_links++;
    return seen;
}

/* ---- delays ---- */

/* The least and the most that the policy may answer to the failure of this number. */
static void range_of(const struct backoff_policy *policy, unsigned attempt, double *low, double *high)
{
    double d = policy->base;

    if (policy->delay) {
        *low = *high = policy->delay(policy, &(struct backoff_history){.attempt = attempt}, 0);
        return;
    }
    for (unsigned i = 1; i < attempt && d < policy->cap; i++)
        d *= policy->factor;
    d = d < policy->cap ? d : policy->cap;
    *low = policy->jitter == BACKOFF_PROPORTIONAL ? d * (1 - policy->spread)
           : policy->jitter == BACKOFF_HALF       ? d / 2
           : policy->jitter == BACKOFF_FULL       ? 0
                                                  : d;
    *high = policy->jitter == BACKOFF_PROPORTIONAL ? d * (1 + policy->spread) : d;
    *low = *low > policy->floor ? *low : policy->floor;
    *high = *high > policy->floor ? *high : policy->floor;
}

static bool is_known_policy(const struct sim *s, const struct backoff_policy *policy)
{
    for (int i = 0; i < 3; i++)
        if (policy->base == s->backoff[i].base && policy->cap == s->backoff[i].cap &&
            policy->jitter == s->backoff[i].jitter && policy->delay == s->backoff[i].delay)
            return true;
    return false;
}

double sim__longest_backoff(const struct sim *s)
{
    double longest = 60, low, high; /* what follows a "no more" beside a READY link */

    for (int i = 0; i < 3; i++) {
        range_of(&s->backoff[i], 1000000, &low, &high);
        longest = high > longest ? high : longest;
    }
    return longest + 2;
}

/* ---- the count of failures ---- */

void sim__forgive(struct sim *s)
{
    for (unsigned k = 0; k < s->p.n_keys; k++)
        s->keys[k].forgiven = true;
}

/* A link that has been READY for so long proves its host: the count begins anew. */
static void see_proof(struct sim *s, const struct pool_host *host, const struct seen_link *seen, double now)
{
    bool was_up = seen->state == LINK_READY || seen->state == LINK_RESETTING || seen->state == LINK_DRAINING;

    if (was_up && now >= seen->ready_at + host->owner.terms->backoff.stable_after - 1e-9 * now)
        s->keys[seen->key].forgiven = true;
}

static void see_proofs(struct sim *s, const struct pool_host *host)
{
    for (const struct link *link = NULL; (link = pool_host_next_link(host, link));) {
        const struct seen_link *seen = sim__seen(s, link->id);
        if (seen)
            see_proof(s, host, seen, testing_now(s->t));
    }
}

/* An attempt begins; the number of its host's attempts says whether it is the host that we knew. */
static void see_attempt(const struct pool_host *host, struct key *key)
{
    if (host->opened <= key->opened)
        key->forgiven = true;
    key->opened = host->opened;
}

/* Failures add up until something forgives them. */
static void check_count(struct sim *s, const struct pool_host *host, unsigned failures, struct key *key)
{
    double begun_anew = pool__of(host)->begun_anew; /* of a sleep it hears later than we */

    if (failures <= key->failures)
        see_proofs(s, host);
    key->forgiven = key->forgiven || begun_anew != key->begun_anew;
    key->begun_anew = begun_anew;
    HOLDS(s, failures > key->failures || key->forgiven);
    key->failures = failures;
    key->forgiven = false;
}

static void check_delay(struct sim *s, const struct pool_host *host, const struct link_transition *move, int key)
{
    const struct backoff_policy *policy = &host->owner.terms->backoff;
    double low, high, longest = sim__longest_backoff(s);

    HOLDS(s, is_known_policy(s, policy));
    if (!strcmp(move->event, link__event_name(LINK_EV_HOLD))) {
        s->rare.n[RARE_SPREAD_AFTER_LOSS]++;
        HOLDS(s, move->delay > 0 && move->delay <= longest);
        return;
    }
    HOLDS(s, move->attempt >= 1);
    HOLDS(s, !policy->max_attempts || move->attempt < policy->max_attempts);
    check_count(s, host, move->attempt, &s->keys[key]);
    range_of(policy, move->attempt, &low, &high);
    HOLDS(s, move->delay >= low * (1 - 1e-9) && move->delay <= high * (1 + 1e-9));
}

/* ---- attempts ---- */

/* Where no target is in the game, those who wait for a host are in its line: a new link is opened only while there are
 * fewer attempts than leases, beside what is, or was, kept up, or was asked for. A link that waited out a backoff or a
 * spread is the probe, and goes on whatever is under way. */
static void check_opening(struct sim *s, const struct pool_host *host, const struct link_transition *move)
{
    struct key *key = &s->keys[sim__key_of(s, host)];

    if (pool__options(host)->min_links > key->kept)
        key->kept = pool__options(host)->min_links;
    if (s->p.n_targets || kind_is_shared(key->kind) || move->from != LINK_IDLE)
        return;
    HOLDS(s, host->n[LINK_CONNECTING] + host->n[LINK_HANDSHAKING] <= key->line.n + key->kept + 1);
}

/* ---- one move ---- */

/* Nothing of ours ends a link under its holder but a drain whose time is up. */
static void check_end_under_lease(struct sim *s, const struct link_transition *move, const struct seen_link *seen)
{
    enum link_reason why = move->reason;

    if (!seen->held || kind_is_shared(s->keys[seen->key].kind))
        return;
    HOLDS(s, why != LINK_IDLE_TIMEOUT && why != LINK_TOO_OLD && why != LINK_USED_UP && why != LINK_MADE_ROOM);
    HOLDS(s, why != LINK_DISCARDED && why != LINK_UNEXPECTED_DATA);
}

static void count_rare(struct sim *s, const struct pool_host *host, const struct link_transition *move, int key)
{
    bool asked_now = s->keys[key].asked_turn == s->turns;

    s->rare.n[RARE_END_AS_ASKED] += asked_now && move->reason == LINK_CLOSED_BY_PEER;
    if (move->reason == LINK_IDLE_TIMEOUT)
        s->keys[key].idle_turn = s->turns;
    if (move->from == LINK_RESETTING) {
        s->rare.n[RARE_END_WHILE_RESETTING] += move->reason == LINK_CLOSED_BY_PEER || move->reason == LINK_RESET;
        s->rare.n[RARE_RESET_TIMED_OUT] += move->reason == LINK_TIMED_OUT;
    }
    if (move->from == LINK_HANDSHAKING && move->to == LINK_READY && s->keys[key].line.n > 1)
        s->rare.n[RARE_PROBE_WITH_FULL_LINE] += host->failures && s->keys[key].line.n >= s->options.max_line;
    if (move->reason == LINK_MADE_ROOM)
        s->made_room_turn = s->turns;
    if (move->reason == LINK_NO_DESCRIPTORS)
        s->no_descriptors_turn = s->turns;
    if ((move->reason == LINK_MADE_ROOM || move->reason == LINK_NO_DESCRIPTORS) &&
        s->made_room_turn == s->no_descriptors_turn)
        s->rare.n[RARE_NO_DESCRIPTORS_MAKE_ROOM]++;
}

/* Only who speaks wrongly is hung up on as one who does. */
static void check_reason(struct sim *s, const struct link_transition *move, const struct seen_link *seen)
{
    const struct key *key = &s->keys[seen->key];

    s->rare.n[RARE_LINK_UNANSWERED] += move->from == LINK_READY && move->reason == LINK_TIMED_OUT;
    s->rare.n[RARE_HEARTBEAT_LOST] += move->reason == LINK_HEARTBEAT_LOST;
    if (key->kind == KIND_FRAMED && move->reason == LINK_PROTOCOL_ERROR)
        HOLDS(s, s->peers[key->address].wrongs);
}

static void check_times(
    struct sim *s, const struct pool_host *host, const struct link_transition *move, const struct seen_link *seen)
{
    double now = testing_now(s->t);

    HOLDS(s, move->now >= seen->since && move->now <= now);
    if (move->to == LINK_BACKOFF)
        check_delay(s, host, move, seen->key);
    if (seen->state == LINK_BACKOFF && move->to == LINK_CONNECTING)
        HOLDS(s, now >= seen->due - 1e-9 * now); /* tried too soon */
    if (seen->state == LINK_CONNECTING && move->to == LINK_IDLE)
        HOLDS(s, move->reason != LINK_NO_REASON);
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *move)
{
    struct sim *s = data;
    struct seen_link *seen = seen_link(s, move, host);

    s->turn_moves++;
    s->events++;
    HOLDS(s, seen->state == move->from);
    HOLDS(s, move->to < LINK_STATES && follows[move->from] & 1 << move->to);
    check_times(s, host, move, seen);
    check_end_under_lease(s, move, seen);
    check_reason(s, move, seen);
    see_proof(s, host, seen, move->now);
    s->n_ends += move->reason != LINK_NO_REASON;
    if (move->reason)
        s->last_end = move->reason;
    count_rare(s, host, move, seen->key);
    sim__note_time(s, link_state_name(move->to), move->link, move->now);
    sim__note(s, link_reason_text(move->reason), move->attempt, (uint64_t)move->system_errno);
    if (move->to < LINK_CONNECTING || move->to > LINK_DRAINING)
        seen->over = seen->held > 0;
    if (move->to == LINK_CONNECTING) {
        seen->uses = 0;
        seen->over = false; /* who had the last connection has been told */
        seen->n_got = seen->sent_got = 0;
        seen->heard_at = seen->pinged_at = seen->asked_again = 0;
        seen->unasked = false;
        seen->changes = s->pool ? s->pool->network_changes : 0;
        seen->began = move->now;
        see_attempt(host, &s->keys[seen->key]);
        check_opening(s, host, move);
    }
    if (move->to == LINK_CONNECTING || move->to == LINK_HANDSHAKING) /* options may have changed meanwhile */
        seen->deadline = seen->began + host->owner.terms->connect_timeout;
    if (move->from == LINK_HANDSHAKING && move->to == LINK_READY)
        seen->ready_at = move->now;
    s->keys[seen->key].was_ready = s->keys[seen->key].was_ready || move->to == LINK_READY;
    seen->state = move->to;
    seen->since = move->now;
    seen->due = move->now + move->delay;
    if (move->to == LINK_CLOSED) {
        LL_DELETE(s->links[seen->id % LINK_BUCKETS], seen);
        s->n_links--;
        free(seen);
    }
}

void sim__watch(struct sim *s)
{
    s->observer = (struct pool_observer){.size = sizeof s->observer, .transition = on_transition, .data = s};
    s->options.observer = &s->observer;
}

void sim__links_end(struct sim *s)
{
    HOLDS(s, !s->n_links); /* each has told its end */
}
