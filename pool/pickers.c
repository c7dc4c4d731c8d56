/* pickers.c - the two selection policies that come with the library; written against pool.h alone. */
#include "linkpool/pool.h"

/* `avoid` is a wish: it holds while another host can. */
static bool another_can(const struct pool_pick *pick, size_t i)
{
    for (size_t k = 0; k < pick->n; k++)
        if (k != i && pick->can(pick->hosts[k]) != POOL_HOST_DOWN)
            return true;
    return false;
}

static bool is_avoided(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return lease && lease->avoid && lease->avoid == pick->hosts[i] && another_can(pick, i);
}

/* ---- pick_first ---- */

struct first_state {
    const struct pool_host *current; /* the host whose links are used; compared only, since it may be gone */
    size_t index;                    /* where it was in the list */
};

static bool is_current(const struct pool_pick *pick, const struct first_state *state, size_t i)
{
    return state->current == pick->hosts[i] && pool_host_state(pick->hosts[i]) == LINK_READY;
}

static int find_current(const struct pool_pick *pick, const struct first_state *state)
{
    if (!state->current)
        return POOL_PICK_DOWN;
    if (state->index < pick->n && is_current(pick, state, state->index))
        return (int)state->index;
    for (size_t i = 0; i < pick->n; i++)
        if (is_current(pick, state, i))
            return (int)i;
    return POOL_PICK_DOWN;
}

static int first_of_all(const struct pool_pick *pick, const struct pool_lease *lease)
{
    for (size_t i = 0; i < pick->n; i++)
        if (pick->can(pick->hosts[i]) != POOL_HOST_DOWN && !is_avoided(pick, lease, i))
            return (int)i;
    return POOL_PICK_DOWN;
}

static int first_choice(const struct pool_pick *pick, const struct pool_lease *lease)
{
    int i = find_current(pick, pick->state);

    return i >= 0 && !is_avoided(pick, lease, (size_t)i) ? i : first_of_all(pick, lease);
}

static int first_pick(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    struct first_state *state = pick->state;
    int i = first_choice(pick, lease);

    (void)draw;
    if (i >= 0 && !(lease && lease->avoid)) /* a wish of one lease moves nobody else */
        *state = (struct first_state){pick->hosts[i], (size_t)i};
    return i;
}

static bool first_takes(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return first_choice(pick, lease) == (int)i;
}

const struct pool_picker pool_pick_first = {
    .size = sizeof(struct pool_picker),
    .name = "pick_first",
    .state_size = sizeof(struct first_state),
    .pick = first_pick,
    .takes = first_takes,
};

/* ---- round_robin ---- */

struct robin_state {
    size_t next;
    bool begun; /* from a random host, so that a fleet that starts together does not load the first */
};

static int next_that(
    const struct pool_pick *pick, const struct pool_lease *lease, struct robin_state *state, enum pool_host_can can)
{
    if (can == POOL_HOST_CAN_SERVE && pick->all_busy)
        return POOL_PICK_WAIT;
    for (size_t k = 0, i = state->next; k < pick->n; k++, i = i + 1 < pick->n ? i + 1 : 0) {
        if (pick->can(pick->hosts[i]) != can || is_avoided(pick, lease, i))
            continue;
        state->next = i + 1 < pick->n ? i + 1 : 0;
        return (int)i;
    }
    return POOL_PICK_WAIT;
}

static int robin_pick(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    struct robin_state *state = pick->state;
    int i;

    if (!state->begun)
        state->next = (size_t)(draw % pick->n);
    state->begun = true;
    if (state->next >= pick->n)
        state->next = 0;
    if (!(lease && lease->flags & POOL_FRESH) && (i = next_that(pick, lease, state, POOL_HOST_CAN_SERVE)) >= 0)
        return i;
    if ((i = next_that(pick, lease, state, POOL_HOST_CAN_OPEN)) >= 0)
        return i;
    if ((i = next_that(pick, lease, state, POOL_HOST_CAN_SERVE)) >= 0)
        return i;
    for (size_t k = 0; k < pick->n; k++)
        if (pick->can(pick->hosts[k]) == POOL_HOST_FULL)
            return POOL_PICK_WAIT;
    return POOL_PICK_DOWN;
}

static bool robin_takes(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return !is_avoided(pick, lease, i);
}

const struct pool_picker pool_round_robin = {
    .size = sizeof(struct pool_picker),
    .name = "round_robin",
    .state_size = sizeof(struct robin_state),
    .keeps_up = true,
    .pick = robin_pick,
    .takes = robin_takes,
};
