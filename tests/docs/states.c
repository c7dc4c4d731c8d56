/* states.c - prints docs/states.md: the table of a link's states and events as link/fsm.c has it, and a picture of it.
 *
 * Whatever is said of a cell is read from the table itself, so that the page cannot differ from the code. */
#include <stdbool.h>
#include <stdio.h>

#include "link/fsm.h"

static bool is_move(struct link_move move)
{
    return move.to < LINK_STATES;
}

/* What entering a state does; by the first move that leads there, since all that do say the same. */
static const char *entering(int state)
{
    static const char *const words[] = {
        [LINK_DO_CONNECT] = "a new attempt: open the transport, arm the attempt's deadline",
        [LINK_DO_HANDSHAKE] = "let the protocol introduce itself",
        [LINK_DO_SERVE] = "offer its channels, arm its age",
        [LINK_DO_CLEAN] = "arm the reset deadline",
        [LINK_DO_FINISH] = "arm the drain deadline",
        [LINK_DO_ARM_RETRY] = "arm the retry timer",
        [LINK_DO_REST] = "nothing: no socket, no timer",
    };

    for (int from = 0; from < LINK_STATES; from++)
        for (int event = 0; event < LINK_EVENTS; event++) {
            struct link_move move = link__move((enum link_state)from, (enum link_event)event);
            if (is_move(move) && move.to == state)
                return words[move.action];
        }
    return "never entered";
}

static const char *cell(struct link_move move)
{
    if (is_move(move))
        return link_state_name((enum link_state)move.to);
    return move.action == LINK_DO_IGNORE ? "." : "!";
}

static void print_table(void)
{
    printf("| state |");
    for (int event = 0; event < LINK_EVENTS; event++)
        printf(" %s |", link__event_name((enum link_event)event));
    printf("\n| --- |");
    for (int event = 0; event < LINK_EVENTS; event++)
        printf(" --- |");
    for (int state = 0; state < LINK_STATES; state++) {
        printf("\n| **%s** |", link_state_name((enum link_state)state));
        for (int event = 0; event < LINK_EVENTS; event++)
            printf(" %s |", cell(link__move((enum link_state)state, (enum link_event)event)));
    }
    printf("\n");
}

static void print_entering(void)
{
    printf("| state | what entering it does |\n| --- | --- |\n");
    for (int state = 0; state < LINK_STATES; state++)
        printf("| **%s** | %s |\n", link_state_name((enum link_state)state), entering(state));
}

/* One arrow a pair of states, with the events that take it. */
static void print_arrow(int from, int to)
{
    const char *between = ": ";

    for (int event = 0; event < LINK_EVENTS; event++) {
        struct link_move move = link__move((enum link_state)from, (enum link_event)event);
        if (!is_move(move) || move.to != to)
            continue;
        if (*between == ':')
            printf("    %s --> %s", link_state_name((enum link_state)from), link_state_name((enum link_state)to));
        printf("%s%s", between, link__event_name((enum link_event)event));
        between = " / ";
    }
    if (*between != ':')
        printf("\n");
}

static void print_picture(void)
{
    printf("```mermaid\nstateDiagram-v2\n    [*] --> %s\n", link_state_name(LINK_IDLE));
    for (int from = 0; from < LINK_STATES; from++)
        for (int to = 0; to < LINK_STATES; to++)
            print_arrow(from, to);
    printf("    %s --> [*]\n```\n", link_state_name(LINK_CLOSED));
}

int main(void)
{
    printf("# The states of a link\n\n");
    printf("Printed by `make docs` from the table in `link/fsm.c`; do not edit. What each state means: "
           "`docs/design.md`.\n\n");
    printf("A cell says the next state. `.`: the event means nothing there; it is ignored, and counted. `!`: only a "
           "fault of\n");
    printf("the library could bring it about; debug builds stop, others ignore and count it.\n\n");
    print_table();
    printf("\n");
    print_entering();
    printf("\n");
    print_picture();
    return 0;
}
