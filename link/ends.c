/* ends.c - what an end is: ours or not, quiet, a loss or a failure. Looks at the link and changes nothing. */
#include "link/internal.h"

bool link__was_ours(enum link_reason reason)
{
    switch (reason) {
    case LINK_UNEXPECTED_DATA:
    case LINK_IDLE_TIMEOUT:
    case LINK_TOO_OLD:
    case LINK_USED_UP:
    case LINK_DRAINED:
    case LINK_DISCARDED:
    case LINK_MADE_ROOM:
    case LINK_STOPPED:
        return true;
    default:
        return false;
    }
}

/* Seconds: a link that ends sooner, by no wish of ours and before anybody used it, is a failure even where the policy
 * takes READY for proof. A peer that hangs up at once, or speaks unasked, would be dialled in a circle. */
static const double least_life = 0.1;

static bool died_unused(const struct link *link)
{
    return link__now(link__core(link)) - link->since < least_life && link->uses == link__promised(link);
}

bool link__is_fault(enum link_reason reason)
{
    return reason && reason != LINK_CLOSED_BY_PEER && !link__was_ours(reason);
}

bool link__is_sent_away(const struct link *link)
{
    return link__is_fault((enum link_reason)link->retire);
}

static bool is_stable(const struct link *link)
{
    return link__now(link__core(link)) - link->since >= link->owner->terms->backoff.stable_after;
}

bool link__has_served(const struct link *link)
{
    return link->bits & LINK_ANSWERED || is_stable(link);
}

enum link_kind_of_end link__kind_of_end(const struct link *link, enum link_reason reason)
{
    if (link__is_opening(link))
        return link__was_ours(reason) && reason != LINK_UNEXPECTED_DATA ? LINK_END_QUIET : LINK_END_FAILURE;
    if (link__was_ours(reason) && (reason != LINK_UNEXPECTED_DATA || link->uses))
        return LINK_END_QUIET;
    if (link__is_sent_away(link))
        return link->is_judged ? LINK_END_QUIET : LINK_END_FAILURE;
    if (died_unused(link))
        return LINK_END_FAILURE;
    if (link__state(link) == LINK_DRAINING)
        return LINK_END_QUIET; /* that it goes was known, and how it does says nothing of the next one */
    if (reason == LINK_CLOSED_BY_PEER) {
        bool unheld = link__held(link) == link__promised(link) && !link->fault;
        /* It has answered, or its holder had ended the other direction: an orderly end of an exchange. */
        if (link->bits & (LINK_ANSWERED | LINK_SHUT) || (unheld && is_stable(link)))
            return LINK_END_QUIET;
    }
    return is_stable(link) ? LINK_END_LOSS : LINK_END_FAILURE;
}
