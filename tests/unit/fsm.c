/* fsm.c - the table of a link's states: every cell is filled, and the whole holds together. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdbool.h>
#include <string.h>

#include "link/fsm.h"

/* What enters each state; a move that leads there does no other thing. */
static const enum link_action enters[LINK_STATES] = {
    [LINK_IDLE] = LINK_DO_REST,
    [LINK_CONNECTING] = LINK_DO_CONNECT,
    [LINK_HANDSHAKING] = LINK_DO_HANDSHAKE,
    [LINK_READY] = LINK_DO_SERVE,
    [LINK_RESETTING] = LINK_DO_CLEAN,
    [LINK_DRAINING] = LINK_DO_FINISH,
    [LINK_BACKOFF] = LINK_DO_ARM_RETRY,
    [LINK_OFFLINE] = LINK_DO_REST,
    [LINK_CLOSED] = LINK_DO_REST,
};

static bool is_move(struct link_move move)
{
    return move.to < LINK_STATES && move.action == enters[move.to];
}

static bool is_filled(struct link_move move)
{
    bool stays = move.action == LINK_DO_IGNORE || move.action == LINK_DO_IMPOSSIBLE;

    return is_move(move) || (move.to == LINK_STATES && stays);
}

Test(fsm, every_cell_is_filled)
{
    cr_assert(not(is_filled((struct link_move){0}))); /* a cell left zero */
    for (int state = 0; state < LINK_STATES; state++)
        for (int event = 0; event < LINK_EVENTS; event++)
            cr_assert(is_filled(link__move((enum link_state)state, (enum link_event)event)), "%s: %s",
                link_state_name((enum link_state)state), link__event_name((enum link_event)event));
}

static bool has_socket(int state)
{
    return state >= LINK_CONNECTING && state <= LINK_DRAINING;
}

Test(fsm, what_is_open_can_end_in_three_ways_and_what_is_not_cannot)
{
    for (int state = 0; state < LINK_STATES; state++) {
        struct link_move retry = link__move((enum link_state)state, LINK_EV_END_RETRY);
        struct link_move rest = link__move((enum link_state)state, LINK_EV_END_REST);
        struct link_move out = link__move((enum link_state)state, LINK_EV_END_OUT);
        if (has_socket(state)) {
            cr_assert(eq(int, retry.to, LINK_BACKOFF));
            cr_assert(eq(int, rest.to, LINK_IDLE));
            cr_assert(eq(int, out.to, LINK_OFFLINE));
        } else {
            cr_assert(eq(int, retry.action, LINK_DO_IMPOSSIBLE));
            cr_assert(eq(int, rest.action, LINK_DO_IMPOSSIBLE));
            cr_assert(eq(int, out.action, LINK_DO_IMPOSSIBLE));
        }
    }
}

Test(fsm, stop_leads_to_rest_from_wherever_something_is_under_way)
{
    for (int state = 0; state < LINK_STATES; state++) {
        struct link_move move = link__move((enum link_state)state, LINK_EV_STOP);
        if (state == LINK_IDLE || state == LINK_CLOSED)
            cr_assert(eq(int, move.action, LINK_DO_IGNORE));
        else
            cr_assert(eq(int, move.to, LINK_IDLE));
    }
}

Test(fsm, every_state_is_reached_and_only_closed_is_final)
{
    bool reached[LINK_STATES] = {[LINK_IDLE] = true};

    for (int round = 0; round < LINK_STATES; round++)
        for (int from = 0; from < LINK_STATES; from++)
            for (int event = 0; event < LINK_EVENTS; event++) {
                struct link_move move = link__move((enum link_state)from, (enum link_event)event);
                if (reached[from] && is_move(move))
                    reached[move.to] = true;
            }
    for (int from = 0; from < LINK_STATES; from++) {
        unsigned ways = 0;
        cr_assert(reached[from], "%s", link_state_name((enum link_state)from));
        for (int event = 0; event < LINK_EVENTS; event++)
            ways += is_move(link__move((enum link_state)from, (enum link_event)event));
        cr_assert(eq(int, ways == 0, from == LINK_CLOSED));
    }
}

Test(fsm, offline_is_left_by_start_and_stop_alone_and_closed_is_entered_from_idle_alone)
{
    for (int event = 0; event < LINK_EVENTS; event++) {
        bool leaves = is_move(link__move(LINK_OFFLINE, (enum link_event)event));
        cr_assert(eq(int, leaves, event == LINK_EV_START || event == LINK_EV_STOP));
    }
    for (int from = 0; from < LINK_STATES; from++)
        for (int event = 0; event < LINK_EVENTS; event++)
            if (link__move((enum link_state)from, (enum link_event)event).to == LINK_CLOSED)
                cr_assert(eq(int, from, LINK_IDLE));
}

Test(fsm, every_cell_is_walked_as_the_table_says)
{
    for (int state = 0; state < LINK_STATES; state++)
        for (int event = 0; event < LINK_EVENTS; event++) {
            struct link_move move = link__move((enum link_state)state, (enum link_event)event);
            struct link_fsm fsm = {.generation = 5, .state = (uint8_t)state};
            struct link_fsm_counts counts = {0};
            cr_assert(eq(int, link__step(&fsm, 5, (enum link_event)event, &counts), move.action));
            cr_assert(eq(int, fsm.state, is_move(move) ? move.to : state));
            cr_assert(eq(u64, fsm.generation, 5));
            cr_assert(eq(u64, counts.ignored, move.action == LINK_DO_IGNORE));
            cr_assert(eq(u64, counts.impossible, move.action == LINK_DO_IMPOSSIBLE));
            cr_assert(eq(u64, counts.stale, 0));
        }
}

Test(fsm, states_and_events_have_names_of_their_own)
{
    for (int i = 0; i < LINK_STATES; i++)
        for (int k = 0; k < i; k++)
            cr_assert(
                ne(str, (char *)link_state_name((enum link_state)i), (char *)link_state_name((enum link_state)k)));
    for (int i = 0; i < LINK_EVENTS; i++)
        for (int k = 0; k < i; k++)
            cr_assert(
                ne(str, (char *)link__event_name((enum link_event)i), (char *)link__event_name((enum link_event)k)));
    cr_assert(eq(str, (char *)link_state_name(LINK_IDLE), "idle"));
    cr_assert(eq(str, (char *)link_state_name(LINK_CLOSED), "closed"));
    cr_assert(eq(str, (char *)link_state_name(LINK_STATES), "unknown"));
    cr_assert(eq(str, (char *)link_state_name((enum link_state) - 1), "unknown"));
}
