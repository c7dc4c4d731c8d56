/* io.c - a link and its descriptor: what is watched for, and who is told of what came.
 *
 * While it opens its transport is told, then its protocol; while it is held its holder, or the protocol of a shared
 * one. On a link that nobody holds all that comes is an end, unless its protocol knows better. */
#include "link/internal.h"

/* ---- what comes ---- */

/* What transport_fail() said, or what is likely. */
static enum link_reason said_reason(const struct link_owner *owner, enum link_reason otherwise)
{
    return owner->fail_reason ? (enum link_reason)owner->fail_reason : otherwise;
}

static void go_on_opening(struct link *link, unsigned events)
{
    uint64_t attempt = link->fsm.generation;
    enum transport_step how = link->owner->transport->open(&link->transport, events);
    struct link_owner *owner = link->owner;

    if (link->fsm.generation != attempt || link__state(link) != LINK_CONNECTING)
        return; /* it ended within: transport_lost() */
    if (how == TRANSPORT_UP)
        link__start_protocol(link);
    else if (how == TRANSPORT_FAILED)
        link__end(link, said_reason(owner, LINK_UNREACHABLE), owner->fail_errno);
}

bool link__look(struct link *link)
{
    const struct protocol *protocol = link->owner->protocol;

    switch (link->owner->transport->idle(&link->transport)) {
    case TRANSPORT_CLEAN:
        return true;
    case TRANSPORT_BYTES:
        if (link__is_shared(link) && !protocol->idle_input)
            return true; /* its input() takes them */
        if (protocol->idle_input && protocol->idle_input(&link->protocol) == 1)
            return link__state(link) == LINK_READY; /* it may have said that the peer is leaving */
        link__end(link, LINK_UNEXPECTED_DATA, 0);   /* if the hook ended it, this is ignored */
        return false;
    case TRANSPORT_EOF:
        link__end(link, LINK_CLOSED_BY_PEER, 0);
        return false;
    default:
        link__end(link, said_reason(link->owner, LINK_RESET), link->owner->fail_errno);
        return false;
    }
}

/* What a hook could not write in full at a return goes on, or is of no interest. */
static void look_unheld(struct link *link, unsigned events)
{
    const struct protocol *protocol = link->owner->protocol;

    if (events & LINKPOOL_WRITE) {
        link__watch(link, LINKPOOL_READ);
        if (protocol->input && link__is_shared(link))
            protocol->input(&link->protocol, LINKPOOL_WRITE);
    }
    if (events & LINKPOOL_READ && link__is_open(link) && !(link->bits & LINK_ENDING))
        link__look(link);
}

/* Its winner has still to be told. What came is a greeting for it where nobody used the link before; else it is
 * somebody's late answer. */
static void look_at_promised(struct link *link)
{
    if (link->uses > 1 || link->owner->transport->idle(&link->transport) != TRANSPORT_BYTES) {
        link__look(link);
        return;
    }
    link__set_bits(link, 0, LINK_UNREAD);
    link__watch(link, link->interest & ~(unsigned)LINKPOOL_READ);
}

/* Room to write rings once: what is short again asks anew, and a protocol that has nothing left to write need not. */
static void tell_shared(struct link *link, unsigned events)
{
    if (events & LINKPOOL_WRITE)
        link__watch(link, link->interest & ~(unsigned)LINKPOOL_WRITE);
    link->owner->protocol->input(&link->protocol, events);
}

void link__wake(struct link *link, unsigned events)
{
    const struct protocol *protocol = link->owner->protocol;

    switch (link__state(link)) {
    case LINK_CONNECTING:
        go_on_opening(link, events);
        break;
    case LINK_HANDSHAKING:
    case LINK_RESETTING:
        if (protocol->input)
            protocol->input(&link->protocol, events);
        else
            link__watch(link, 0); /* it reads nothing yet: what came waits for the holder */
        break;
    case LINK_READY:
    case LINK_DRAINING:
        if (link__is_shared(link) && (link__held(link) || !protocol->idle_input))
            tell_shared(link, events);
        else if (link->channel.state != CHANNEL_HELD)
            look_unheld(link, events);
        else if (link->channel.promised)
            look_at_promised(link);
        else
            link__tell_holder(link, events);
        break;
    default: /* no socket, no events */
        break;
    }
}

static struct link *of_io(struct driver_io *io)
{
    return (struct link *)((char *)io - offsetof(struct link, io));
}

static void on_io(struct driver_io *io, unsigned events)
{
    struct link *link = of_io(io);
    struct link_core *core = link__core(link);

    link__enter(core);
    if (events & LINKPOOL_READ)
        link__heard(link);
    if (events & LINKPOOL_UNWATCHED)
        link__end(link, LINK_NO_MEMORY, 0); /* we lack something, not the peer: no word of its socket is asked for */
    else
        link__wake(link, events);
    link__leave(core);
}

/* ---- what is watched for ---- */

void link__watch(struct link *link, unsigned interest)
{
    const struct link_owner *owner = link->owner;
    const struct driver_ops *ops = owner->core->driver->ops;

    if (owner->transport->interest)
        interest = owner->transport->interest(&link->transport, interest);
    interest |= link->interest & LINKPOOL_UNWATCHED;
    if (link->interest == interest)
        return;
    link->interest = (uint8_t)interest; /* for when it has a descriptor, if it has none for now */
    if (link->bits & LINK_WATCHED)
        ops->io_events(owner->core->driver, &link->io, interest);
}

/* It is heard again before it had to end: its timer is that of its state. */
static void wait_on(struct link *link)
{
    const struct link_terms *terms = link->owner->terms;

    if (link__is_opening(link))
        link__arm_at(link, link->since + terms->connect_timeout);
    else if (link__state(link) == LINK_READY)
        link__arm_ready(link);
    else
        link__arm_at(link, link__now(link__core(link)) +
                               (link__state(link) == LINK_RESETTING ? terms->reset_timeout : terms->drain_timeout));
}

int link__watch_descriptor(struct link *link, int fd, unsigned interest)
{
    struct link_core *core = link__core(link);
    bool was_deaf = link->interest & LINKPOOL_UNWATCHED;

    if (link->bits & LINK_WATCHED)
        core->driver->ops->io_stop(core->driver, &link->io);
    link__set_bits(link, LINK_WATCHED, 0);
    if (fd < 0)
        return 0;
    link->io.on = on_io;
    if (core->driver->ops->io_start(core->driver, &link->io, fd, interest))
        return LINKPOOL_ENOMEM;
    link__set_bits(link, 0, LINK_WATCHED);
    link->interest = (uint8_t)interest;
    if (was_deaf)
        wait_on(link);
    return 0;
}

void link__watch_or_end(struct link *link, int fd, unsigned interest)
{
    if (!link__watch_descriptor(link, fd, interest))
        return;
    link->interest = (uint8_t)(interest | LINKPOOL_UNWATCHED);
    link__arm_at(link, 0);
}
