/* users.c - those who ask, wait, are told, hold and give back; each follows its lease and knows what it may be told. */
#include <math.h>
#include <utlist.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

static void after_outcome(struct sim *s, struct user *user)
{
    struct line *line = user->line;

    DL_DELETE(line->first, user);
    line->n--;
    s->n_waiting--;
    user->line = NULL;
    user->state = USER_FREE;
}

/* Its link has one holder less. */
static void let_go(struct sim *s, struct user *user)
{
    struct seen_link *seen = sim__seen(s, user->link);

    if (seen && seen->held)
        seen->held--;
    s->n_holding--;
    user->state = USER_FREE;
}

/* ---- giving back ---- */

static void count_return(struct sim *s, uint64_t ends, uint64_t memory)
{
    if (s->n_ends != ends) {
        s->rare.n[RARE_ROOM_FOR_OLDER] += s->last_end == LINK_MADE_ROOM;
        s->rare.n[RARE_RECYCLED_AT_RETURN] += s->last_end == LINK_DRAINED;
        s->rare.n[RARE_USED_UP] += s->last_end == LINK_USED_UP;
        s->rare.n[RARE_TOO_OLD_AT_RETURN] += s->last_end == LINK_TOO_OLD;
    }
    if (sim__memory_failures(s) != memory)
        s->rare.n[RARE_NO_MEMORY_AT_RETURN]++;
}

void sim__release(struct sim *s, struct user *user, enum pool_disposition disposition)
{
    uint64_t ends = s->n_ends, memory = sim__memory_failures(s);
    enum user_state was = user->state;
    int answer;

    if (!s->pool)
        return;
    if (was == USER_HOLDING && s->in_closed)
        s->rare.n[RARE_RELEASE_IN_CLOSED]++;
    if (was == USER_HOLDING)
        let_go(s, user);
    sim__note(s, "release", user->serial, disposition);
    if (s->p.memory_fails && !s->calm && once_in(s, 16))
        testing_fail_allocation(s->t, 1, false);
    answer = pool_release(&user->lease, disposition);
    HOLDS(s, answer == (was == USER_HOLDING ? 0 : LINKPOOL_ESTATE));
    HOLDS(s, !user->lease.channel);
    count_return(s, ends, memory);
}

/* ---- being told ---- */

static void check_failure(struct sim *s, const struct user *user)
{
    const struct pool_lease *lease = &user->lease;
    double now = testing_now(s->t);

    switch (lease->status) {
    case LINKPOOL_ETIMEDOUT:
        HOLDS(s, now >= user->deadline - 1e-9 * now);
        HOLDS(s, lease->stage != POOL_STAGE_NONE);
        break;
    case LINKPOOL_EUNAVAILABLE:
        HOLDS(s, !(lease->flags & POOL_WAIT_FOR_READY) || (user->target && (!user->target->n || !s->pool)));
        break;
    default:
        HOLDS(s, lease->status == LINKPOOL_ECLOSED || lease->status == LINKPOOL_ENOMEM);
        HOLDS(s, lease->status != LINKPOOL_ENOMEM || s->p.memory_fails);
        break;
    }
}

static void on_done(struct pool_lease *lease)
{
    struct user *user = lease->data;
    struct sim *s = user->sim;
    double now = testing_now(s->t);

    HOLDS(s, user->state == USER_WAITING);
    HOLDS(s, (lease->status == POOL_READY) == (lease->channel != NULL));
    HOLDS(s, now <= user->deadline + 1e-6 || s->jumped_at >= user->asked || lease->status == LINKPOOL_ECLOSED);
    sim__note_time(s, "done", (uint64_t)(int64_t)lease->status, now);
    if (lease->channel)
        sim__check_told(s, user);
    after_outcome(s, user);
    if (lease->channel && now >= user->deadline)
        s->rare.n[RARE_ANSWER_AT_DEADLINE]++;
    if (lease->channel)
        sim__held(s, user);
    else
        check_failure(s, user);
    s->in_done++;
    if (s->calm && lease->channel)
        sim__release(s, user, POOL_REUSE);
    else
        sim__react(s);
    s->in_done--;
}

static void on_closed(struct pool_lease *lease)
{
    struct user *user = lease->data;
    struct sim *s = user->sim;

    HOLDS(s, user->state == USER_HOLDING);
    HOLDS(s, !lease->channel && lease->status < 0);
    HOLDS(s, lease->status == LINKPOOL_ECLOSED || lease->reason != LINK_NO_REASON);
    HOLDS(s, lease->fate != POOL_NOT_SENT || !lease->bytes_sent || kind_is_shared(s->keys[user->key].kind));
    sim__note(s, "closed", user->serial, (uint64_t)(int64_t)lease->status);
    if (s->pool && lease->status == LINKPOOL_ECLOSED)
        s->rare.n[RARE_DRAIN_TIMED_OUT]++;
    let_go(s, user);
    s->in_closed++;
    sim__react(s);
    s->in_closed--;
}

/* ---- asking ---- */

static void wait_in(struct sim *s, struct user *user, struct line *line)
{
    double timeout = user->lease.timeout;

    user->line = line;
    DL_APPEND(line->first, user);
    line->n++;
    s->n_waiting++;
    user->state = USER_WAITING;
    user->order = ++s->order;
    user->passed_until = 0;
    user->decided = pool__claim(&user->lease)->decided;
    user->asked = pool_now(s->pool);
    user->deadline = user->asked + (timeout > 0 ? timeout : s->options.wait_timeout);
}

static void count_refusal(struct sim *s, const struct pool_lease *lease)
{
    static const enum rarity rarities[] = {[POOL_BOUND_LINE] = RARE_FULL_LINE,
        [POOL_BOUND_POOL_WAITING] = RARE_FULL_WAITING,
        [POOL_BOUND_HOSTS] = RARE_FULL_HOSTS};

    HOLDS(s, (lease->status == LINKPOOL_EFULL) == (lease->bound != POOL_BOUND_NONE));
    if (lease->bound)
        s->rare.n[rarities[lease->bound]]++;
}

/* Within a callback nothing comes any more: what has come with the poll, a link's own end too, was seen before. But one
 * given back in this turn after a read that came short is taken to have had no more, not even its end; and what comes
 * with a connection, a greeting or its end, is its first holder's. */
static void check_news(struct sim *s, const struct user *user)
{
    const struct link *link = channel_link(user->lease.channel);
    bool is_back = link->turn == (uint32_t)s->pool->core.driver->turn;

    if (s->in_bytes && !is_back && link->uses > 1 && s->trouble_turn != s->turns && !s->p.system_fails &&
        !link__is_shared(link))
        HOLDS(s, sim__is_quiet(s, link));
}

static void take_answer(struct sim *s, struct user *user, int answer)
{
    struct pool_lease *lease = &user->lease;

    HOLDS(s, answer == lease->status);
    HOLDS(s, (answer == POOL_READY) == (lease->channel != NULL));
    HOLDS(s, answer != LINKPOOL_EINVAL && answer != LINKPOOL_ESTATE && answer != LINKPOOL_ETIMEDOUT);
    HOLDS(s, answer != LINKPOOL_EADDRESS && answer != LINKPOOL_ELOST);
    HOLDS(s, answer != LINKPOOL_EUNAVAILABLE || !(lease->flags & POOL_WAIT_FOR_READY));
    count_refusal(s, lease);
    sim__note(s, "ask", (uint64_t)(int64_t)user->key, (uint64_t)(int64_t)answer);
    if (answer == POOL_READY) {
        check_news(s, user);
        sim__check_newcomer(s, user);
        user->asked_now = true;
        sim__held(s, user);
        user->asked_now = false;
        s->rare.n[RARE_READY_WITHIN_DONE] += s->in_done > 0;
    } else if (answer == POOL_PENDING) {
        wait_in(s, user, user->target ? user->target->line : &s->keys[user->key].line);
    }
}

static void wish(struct sim *s, struct user *user)
{
    struct pool_lease *lease = &user->lease;
    unsigned time = below(s, 8), avoided = below(s, s->p.n_keys);

    lease->done = on_done;
    lease->closed = on_closed;
    lease->data = user;
    lease->timeout = time < 4 ? 0 : time == 4 ? INFINITY : sim__spread(s, 0.001, time == 5 ? 600 : 2);
    lease->flags = once_in(s, 3) ? POOL_WAIT_FOR_READY : 0;
    lease->flags |= once_in(s, 12) ? POOL_FRESH : 0;
    lease->avoid = once_in(s, 8) ? s->keys[avoided].pin : NULL;
    lease->hash = draw(s);
}

/* Keys that a text leads to: no tag, and the pool's own protocol. */
static bool has_text(const struct key *key)
{
    return key->kind == KIND_RAW && !*key->tag;
}

static void note_evicted(struct sim *s, const struct key *key)
{
    struct pool_host *host = NULL;

    if (!s->hosts_went)
        return;
    while ((host = pool_next_host(s->pool, host)))
        if (!strcmp(pool_host_address(host), s->peers[key->address].address))
            return;
    s->rare.n[RARE_EVICTED_AND_NAMED] += key->known;
}

static void ask_key(struct sim *s, struct user *user, int k)
{
    struct key *key = &s->keys[k];
    bool by_text = has_text(key) && (!key->pin || once_in(s, 2));

    if (!by_text && !sim__pin(s, k))
        return;
    wish(s, user);
    user->target = NULL;
    user->key = k;
    s->rare.n[RARE_IDLE_AS_ASKED] += key->idle_turn == s->turns;
    key->asked_turn = s->turns;
    if (by_text)
        note_evicted(s, key);
    key->known = true;
    take_answer(s, user,
        by_text ? pool_acquire(s->pool, s->peers[key->address].address, &user->lease)
                : pool_acquire_host(key->pin, &user->lease));
}

static void ask_target(struct sim *s, struct user *user, unsigned i)
{
    struct target *target = &s->targets[i];
    char name[] = {(char)('a' + i), '\0'};

    wish(s, user);
    user->target = target;
    user->key = -1;
    take_answer(s, user,
        once_in(s, 2) ? pool_acquire(s->pool, name, &user->lease) : pool_acquire_target(target->target, &user->lease));
}

void sim__ask(struct sim *s, struct user *user)
{
    unsigned i = below(s, MAX_TARGETS), hot = 1 + below(s, s->p.n_keys);
    unsigned k = below(s, hot);
    uint64_t memory = sim__memory_failures(s), ends = s->n_ends;

    if (user->state != USER_FREE || !s->pool)
        return;
    if (s->targets[i].target && once_in(s, 2))
        ask_target(s, user, i);
    else
        ask_key(s, user, (int)k);
    if (sim__memory_failures(s) != memory)
        s->rare.n[RARE_NO_MEMORY_AT_ASKING]++;
    if (s->n_ends != ends) /* nothing else of an acquire ends a link but what it met there */
        s->rare.n[RARE_PEEK_MET_SOMETHING] +=
            s->last_end == LINK_CLOSED_BY_PEER || s->last_end == LINK_RESET || s->last_end == LINK_UNEXPECTED_DATA;
}

/* ---- giving up ---- */

static bool shakes_hands(const struct sim *s, const struct user *user)
{
    struct pool_host_stats stats;

    if (user->target || !s->keys[user->key].pin)
        return false;
    pool_host_stats(s->keys[user->key].pin, &stats, sizeof stats);
    return stats.links[LINK_HANDSHAKING];
}

void sim__cancel(struct sim *s, struct user *user)
{
    enum user_state was = user->state;
    uint8_t claim = pool__claim(&user->lease)->state;
    int answer;

    if (was == USER_WAITING) {
        s->rare.n[RARE_CANCEL_IN_HANDSHAKE] += shakes_hands(s, user);
        s->rare.n[RARE_CANCEL_OF_WINNER] += claim == CLAIM_WON;
        s->rare.n[RARE_CANCEL_OF_FAILED] += claim == CLAIM_FAILED;
        s->rare.n[RARE_CANCEL_IN_DONE] += s->in_done > 0;
        after_outcome(s, user);
    }
    sim__note(s, "cancel", user->order, claim);
    answer = pool_cancel(&user->lease);
    HOLDS(s, answer == (was == USER_WAITING ? 0 : LINKPOOL_ESTATE));
}

/* ---- the next thing a user does ---- */

static void go_on_holding(struct sim *s, struct user *user)
{
    bool may_reuse = sim__may_reuse(s, user);

    if (!once_in(s, s->p.patience) && !sim__is_done(user))
        sim__channel(s, user);
    else
        sim__release(s, user, may_reuse && !once_in(s, 8) ? POOL_REUSE : POOL_DISCARD);
}

void sim__use(struct sim *s, struct user *user)
{
    switch (user->state) {
    case USER_FREE:
        sim__ask(s, user);
        break;
    case USER_WAITING:
        if (once_in(s, 4))
            sim__cancel(s, user);
        break;
    case USER_HOLDING:
        go_on_holding(s, user);
        break;
    }
}

/* Frees the pool here and there, where that is hardest. */
static void maybe_free(struct sim *s)
{
    unsigned seldom = s->in_closed && s->draining ? 4 : s->in_drained ? 4 : s->in_bytes ? 500 : 2000;

    if (s->p.frees && once_in(s, seldom))
        sim__free_pool(s);
}

void sim__react(struct sim *s)
{
    if (s->depth >= DEEPEST || s->calm || !s->pool)
        return;
    s->depth++;
    maybe_free(s);
    if (once_in(s, s->p.react))
        sim__act(s);
    s->depth--;
}
