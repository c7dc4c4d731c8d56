/* crowds.c - groups of calls: told once, with counts that agree with what became of each call. */
#include "pool/call.h"

#include <math.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

void crowds__begin(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_crowds; i++) {
        s->crowds[i].sim = s;
        s->crowds[i].group.data = &s->crowds[i];
        s->crowds[i].group.calls = s->crowds[i].calls;
    }
}

/* Those that were given up without a word, or have nobody to be told. */
static void close_members(struct sim *s, struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->group.n; i++) {
        HOLDS(s, call__state(&crowd->calls[i])->stage == CALL_OVER);
        if (crowd->members[i].out)
            calls__over(s, &crowd->members[i]);
    }
}

static size_t how_many_answered(const struct crowd *crowd)
{
    size_t n = 0;

    for (size_t i = 0; i < crowd->group.n; i++)
        n += crowd->calls[i].status == 0;
    return n;
}

static void check_verdict(struct sim *s, const struct crowd *crowd)
{
    const struct pool_fanout *group = &crowd->group;
    size_t wanted = group->wanted ? group->wanted : group->n;

    HOLDS(s, group->answered + group->failed <= group->n);
    HOLDS(s, group->answered == how_many_answered(crowd));
    if (group->flags & POOL_FANOUT_HEAR_ALL && testing_now(s->t) < crowd->deadline * (1 - 1e-9))
        HOLDS(s, group->answered + group->failed == group->n || !s->pool);
    switch (group->status) {
    case 0:
        HOLDS(s, group->answered >= wanted);
        break;
    case LINKPOOL_ELOST:
        HOLDS(s, group->n - group->failed < wanted);
        break;
    default:
        HOLDS(s, group->status == LINKPOOL_ETIMEDOUT);
        HOLDS(s, testing_now(s->t) >= crowd->deadline * (1 - 1e-9));
        break;
    }
}

static void on_done(struct pool_fanout *group)
{
    struct crowd *crowd = group->data;
    struct sim *s = crowd->sim;

    HOLDS(s, crowd->out);
    close_members(s, crowd);
    check_verdict(s, crowd);
    HOLDS(s, testing_now(s->t) <= crowd->deadline + 1e-6 || s->jumped_at > 0 || !s->pool);
    crowd->out = false;
    sim__note(s, "crowd", group->answered, (uint64_t)(int64_t)group->status);
    s->in_crowd++;
    sim__react(s);
    if (s->pool && s->p.frees && once_in(s, 20) && !s->calm)
        sim__free_pool(s);
    s->in_crowd--;
}

/* ---- asking ---- */

static void draw_group(struct sim *s, struct crowd *crowd)
{
    struct pool_fanout *group = &crowd->group;
    unsigned n = sim__size(s, 1, MAX_CROWD), k = below(s, n + 1), time = below(s, 4);

    group->n = n;
    group->wanted = k;
    group->flags = (n + k) % 3 ? 0 : POOL_FANOUT_HEAR_ALL;
    group->timeout = time < 2 ? 0 : time == 2 ? (double)INFINITY : sim__spread(s, 0.001, 4);
    group->done = on_done;
}

/* Those that could not be started have no call of ours to tell them. */
static void close_unstarted(struct sim *s, struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->group.n; i++)
        if (crowd->members[i].out && call__state(&crowd->calls[i])->stage == CALL_OVER)
            calls__over(s, &crowd->members[i]);
}

static void ask(struct sim *s, struct crowd *crowd)
{
    struct pool_fanout *group = &crowd->group;
    int answer;

    draw_group(s, crowd);
    for (size_t i = 0; i < group->n; i++)
        if (!calls__wish(s, &crowd->members[i])) {
            group->n = i;
            break;
        }
    if (!group->n)
        return;
    group->wanted = group->wanted <= group->n ? group->wanted : 0;
    for (size_t i = 0; i < group->n; i++)
        calls__taken(s, &crowd->members[i]);
    crowd->out = true;
    answer = pool_fanout(s->pool, group);
    sim__note(s, "ask crowd", group->n, (uint64_t)(int64_t)answer);
    crowd->deadline = calls__deadline(s, group->timeout);
    for (size_t i = 0; i < group->n; i++)
        calls__timed(s, &crowd->members[i]);
    HOLDS(s, answer == POOL_PENDING || answer == LINKPOOL_ECLOSED || answer == LINKPOOL_ENOMEM);
    if (answer == POOL_PENDING) {
        close_unstarted(s, crowd);
        return;
    }
    HOLDS(s, group->status == answer);
    crowd->out = false;
    for (size_t i = 0; i < group->n; i++)
        crowd->calls[i].status = answer; /* not even looked at */
    close_members(s, crowd);
}

/* ---- giving up ---- */

static void cancel(struct sim *s, struct crowd *crowd)
{
    HOLDS(s, !pool_fanout_cancel(&crowd->group));
    HOLDS(s, crowd->group.status == LINKPOOL_ECANCELLED);
    crowd->out = false;
    sim__note(s, "cancel crowd", crowd->group.n, crowd->group.answered);
    close_members(s, crowd);
}

/* One of its members alone: it may decide the group, not before that has returned. */
static void cancel_member(struct sim *s, struct crowd *crowd)
{
    struct caller *member = &crowd->members[below(s, (unsigned)crowd->group.n)];
    bool was_decided = crowd->group.status != POOL_PENDING;

    if (!member->out || call__state(member->call)->stage == CALL_OVER)
        return;
    HOLDS(s, !pool_call_cancel(member->call));
    HOLDS(s, crowd->out);
    s->rare.n[RARE_CROWD_DECIDED_WITHIN] += !was_decided && crowd->group.status != POOL_PENDING && s->in_crowd;
    calls__over(s, member);
}

void crowds__act(struct sim *s)
{
    struct crowd *crowd = &s->crowds[below(s, s->p.n_crowds)];

    if (!crowd->out)
        ask(s, crowd);
    else if (once_in(s, 4))
        cancel(s, crowd);
    else
        cancel_member(s, crowd);
}

void crowds__calm(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_crowds; i++)
        if (s->crowds[i].out && s->crowds[i].group.timeout == INFINITY)
            cancel(s, &s->crowds[i]);
}
