/* transport.c - what transports may ask of the library. */
#include "link/internal.h"

void transport_want(struct transport_link *tl, unsigned events)
{
    struct link *link = tl->link;

    if (!(link->bits & LINK_WATCHED)) {
        if (tl->fd >= 0)
            link__watch_or_end(link, tl->fd, events);
    } else if (link->interest != events) {
        link->owner->core->driver->ops->io_events(link->owner->core->driver, &link->io, events);
        link->interest = (uint8_t)events;
    }
}

void transport_moved(struct transport_link *tl, int fd)
{
    struct link *link = tl->link;
    bool is_up = link__is_open(link) && link__state(link) != LINK_CONNECTING; /* else transport_want() follows */

    if (tl->fd == fd && fd < 0)
        return;
    tl->fd = fd;
    if (!(link->bits & LINK_WATCHED) && !is_up)
        return;
    if (is_up)
        link__watch_or_end(link, fd, link->interest & (LINKPOOL_READ | LINKPOOL_WRITE));
    else
        link__watch_descriptor(link, fd, link->interest);
}

void transport_retry(struct transport_link *tl, double delay)
{
    struct link *link = tl->link;
    struct link_core *core = link__core(link);
    double due = link__now(core) + (delay > 0 ? delay : 0),
           deadline = link->since + link->owner->terms->connect_timeout;

    link__timer_set(core, &link->timer, due < deadline ? due : deadline);
}

int transport_fail(struct transport_link *tl, enum link_reason reason, int system_errno, const char *text)
{
    struct link_owner *owner = tl->link->owner;

    owner->fail_reason = (uint8_t)reason;
    owner->fail_errno = system_errno;
    link__note(owner, text);
    return -1;
}

int transport_lost(struct transport_link *tl, enum link_reason reason, int system_errno, const char *text)
{
    if (!tl)
        return LINKPOOL_ELOST;
    transport_fail(tl, reason, system_errno, text);
    link__end(tl->link, reason, system_errno);
    return 0;
}

const struct linkpool_env *transport_env(const struct transport_link *tl)
{
    return link__core(tl->link)->env;
}
const char *transport_address(const struct transport_link *tl)
{
    return tl->link->owner->address_text;
}
const char *transport_server_name(const struct transport_link *tl)
{
    return link__server_name(tl->link->owner);
}
const char *transport_local(const struct transport_link *tl)
{
    return link__local(tl->link->owner);
}
