/* figures.c - what may be read of a link. */
#include <string.h>

#include "link/internal.h"

const char *link_reason_text(enum link_reason reason)
{
    static const char *const texts[LINK_REASONS] = {
        [LINK_NO_REASON] = "no reason",
        [LINK_REFUSED] = "connection refused",
        [LINK_UNREACHABLE] = "unreachable",
        [LINK_TIMED_OUT] = "timed out",
        [LINK_NAME_NOT_FOUND] = "name not found",
        [LINK_RESET] = "connection reset",
        [LINK_CLOSED_BY_PEER] = "closed by peer",
        [LINK_HANDSHAKE_FAILED] = "handshake failed",
        [LINK_HEARTBEAT_LOST] = "heartbeat lost",
        [LINK_PROTOCOL_ERROR] = "protocol error",
        [LINK_TLS_FAILED] = "TLS failed",
        [LINK_UNEXPECTED_DATA] = "unexpected data",
        [LINK_IDLE_TIMEOUT] = "idle timeout",
        [LINK_TOO_OLD] = "too old",
        [LINK_USED_UP] = "used up",
        [LINK_DRAINED] = "drained",
        [LINK_DISCARDED] = "discarded",
        [LINK_MADE_ROOM] = "made room",
        [LINK_NO_DESCRIPTORS] = "no descriptors",
        [LINK_NO_MEMORY] = "no memory",
        [LINK_STOPPED] = "stopped",
        [LINK_SENT_AWAY] = "sent away by the peer",
    };

    return (unsigned)reason < LINK_REASONS ? texts[reason] : "unknown";
}

enum link_state link_state(const struct link *link)
{
    return link__state(link);
}

double link_retry_in(const struct link *link)
{
    double left = link->timer.due - link__now(link__core(link));

    return link__state(link) == LINK_BACKOFF && left > 0 ? left : 0;
}

enum link_reason link_last_reason(const struct link *link, int *system_errno, const char **text)
{
    const struct link_owner *owner = link->owner;

    if (system_errno)
        *system_errno = owner->last_errno;
    if (text)
        *text = owner->text ? owner->text : "";
    return (enum link_reason)owner->last_reason;
}

static bool is_up(enum link_state state)
{
    return state == LINK_READY || state == LINK_RESETTING || state == LINK_DRAINING;
}

/* The least of what its room and its uses leave. */
static unsigned free_channels(const struct link *link)
{
    unsigned used = link__held(link), most = link->owner->terms->max_uses;
    unsigned room = link__is_shared(link) ? link__shared(link)->room : 1;
    unsigned n = room > used ? room - used : 0, left = most > link->uses ? most - link->uses : 0;

    if (link__state(link) != LINK_READY || link->retire || !link__has_room(link))
        return 0;
    return most && left < n ? left : n;
}

void link_stats(const struct link *link, struct link_stats *stats, size_t size)
{
    const struct link_core *core = link__core(link);
    struct link_stats all = {.id = link->id,
        .state = link__state(link),
        .retry_in = link_retry_in(link),
        .uses = link->uses,
        .ignored_events = core->counts.ignored + core->counts.impossible,
        .stale_events = core->counts.stale,
        .connection = link->fsm.generation};

    all.channels = link__held(link);
    all.free = free_channels(link);
    all.age = is_up(all.state) ? link__now(core) - link->since : 0;
    all.room = !is_up(all.state) ? 0 : link__is_shared(link) ? link__shared(link)->room : 1;
    link__alone_stats(link, &all);
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}
