/* link.c - a link carries out what its state machine says.
 *
 * One place opens (link__open), one place shuts (shut), and one function writes the state (link__step, through step()
 * here). An end goes: leases over, socket closed, keeper asked, state moved, keeper told that all is settled. */
#include <assert.h>
#include <string.h>

#include "link/internal.h"

/* ---- moving ---- */

struct detail {
    enum link_reason reason;
    int system_errno;
    double delay;
};

static enum link_action step(struct link *link, enum link_event event, struct detail detail)
{
    struct link_core *core = link__core(link);
    enum link_state from = link__state(link);
    enum link_action action = link__step(&link->fsm, link->fsm.generation, event, &core->counts);

    assert(action != LINK_DO_IMPOSSIBLE);
    if (action == LINK_DO_IGNORE || action == LINK_DO_IMPOSSIBLE)
        return action;
    core->keeper->moved(link, &(struct link_transition){.link = link->id,
                                  .from = from,
                                  .to = link__state(link),
                                  .event = link__event_name(event),
                                  .reason = detail.reason,
                                  .system_errno = detail.system_errno,
                                  .delay = detail.delay,
                                  .now = link__now(core)});
    return action;
}

/* One that hears nothing ends as soon as its hook has returned, whatever it was to wait for. */
void link__arm_at(struct link *link, double due)
{
    struct link_core *core = link__core(link);

    link__timer_set(core, &link->timer, link->interest & LINKPOOL_UNWATCHED ? link__now(core) : due);
}

static void arm(struct link *link, double delay)
{
    link__arm_at(link, link__now(link__core(link)) + delay);
}

/* ---- memory ---- */

/* Known at birth: a protocol that can ask, or a bound on silence. */
static bool hears(const struct link_owner *owner)
{
    return owner->protocol->ping || owner->terms->read_timeout > 0;
}

static size_t size_with(const struct link_owner *owner, bool hears)
{
    return link__rounded(sizeof(struct link)) + link__shared_size(owner->protocol) +
           (hears ? link__rounded(sizeof(struct link_heartbeat)) : 0) + link__rounded(owner->transport->state_size) +
           link__rounded(owner->protocol->link_size);
}

struct link *link__new(struct link_owner *owner)
{
    struct link_core *core = owner->core;
    bool with_heartbeat = hears(owner);
    struct link *link;

    if (link__heap_hold(&core->timers, core->env))
        return NULL;
    if (!(link = link__alloc(core->env, size_with(owner, with_heartbeat)))) {
        link__heap_drop(&core->timers);
        return NULL;
    }
    link->owner = owner;
    link->bits = with_heartbeat ? LINK_HEARS : 0;
    char *room = (char *)link + size_with(owner, with_heartbeat) - link__rounded(owner->transport->state_size) -
                 link__rounded(owner->protocol->link_size);
    link->id = ++core->serial;
    link->timer.kind = LINK_NODE_LINK;
    link->channel.link = link;
    link->transport = (struct transport_link){
        .transport = owner->transport, .link = link, .fd = -1, .state = owner->transport->state_size ? room : NULL};
    link->protocol = (struct protocol_link){.protocol = owner->protocol,
        .link = link,
        .state = owner->protocol->link_size ? room + link__rounded(owner->transport->state_size) : NULL};
    return link;
}

void link__free(struct link *link)
{
    struct link_core *core = link__core(link);

    step(link, LINK_EV_FREE, (struct detail){0});
    link->next = core->dead;
    core->dead = link;
}

void link__free_memory(struct link *link)
{
    struct link_owner *owner = link->owner;
    struct link_core *core = owner->core;

    if (link__is_shared(link))
        link__free_streams(link);
    link__heap_drop(&core->timers);
    link__release(core->env, link, size_with(owner, link->bits & LINK_HEARS));
    core->keeper->buried(owner);
}

/* ---- opening ---- */

static void reset_states(struct link *link)
{
    if (link->transport.state)
        memset(link->transport.state, 0, link->owner->transport->state_size);
    if (link->protocol.state)
        memset(link->protocol.state, 0, link->owner->protocol->link_size);
    if (link__is_shared(link)) {
        link__set_room(link, link->owner->protocol->max_channels ? link->owner->protocol->max_channels : 1);
        link__shared(link)->unanswered = 0;
    }
    link->bits &= LINK_HEARS;
    link__heartbeat_reset(link);
    link->uses = 0;
    link->retire = link->fault = LINK_NO_REASON;
    link->is_judged = link->is_unasked = false;
    link->transport.fd = -1;
}

static void serve(struct link *link)
{
    struct link_core *core = link__core(link);
    double stable_after = link->owner->terms->backoff.stable_after;

    link->since = link__now(core);
    link->age_draw = (uint16_t)(core->env->random(core->env->data) & 0xffff);
    link__set_bits(link, 0, LINK_UNPROVEN);
    if (stable_after <= 0) {
        link__set_bits(link, LINK_UNPROVEN, 0);
        core->keeper->proven(link);
    }
    link__watch(link, LINKPOOL_READ);
    link__heartbeat_begin(link);
    link__arm_ready(link);
    core->keeper->served(link);
}

void link__start_protocol(struct link *link)
{
    const struct protocol *protocol = link->owner->protocol;

    if (step(link, LINK_EV_UP, (struct detail){0}) != LINK_DO_HANDSHAKE)
        return;
    arm(link, link->since + link->owner->terms->connect_timeout - link__now(link__core(link)));
    if (!(link->bits & LINK_WATCHED) && link->transport.fd >= 0 &&
        link__watch_descriptor(link, link->transport.fd, LINKPOOL_READ)) { /* it was up without waiting for anything */
        link__end(link, LINK_NO_MEMORY, 0);
        return;
    }
    link__set_bits(link, 0, LINK_STARTED);
    link__watch(link, LINKPOOL_READ);
    if (protocol->start)
        protocol->start(&link->protocol);
    else
        protocol_ready(&link->protocol);
}

void link__open(struct link *link)
{
    struct link_core *core = link__core(link);
    enum link_event event = link__state(link) == LINK_BACKOFF ? LINK_EV_RETRY : LINK_EV_START;

    link__timer_clear(core, &link->timer);
    link->since = link__now(core);
    if (step(link, event, (struct detail){0}) != LINK_DO_CONNECT)
        return;
    link->fsm.generation = ++core->serial;
    reset_states(link);
    arm(link, link->owner->terms->connect_timeout);
    link__wake(link, 0);
}

void link__hold(struct link *link, double delay)
{
    if (step(link, LINK_EV_HOLD, (struct detail){.delay = delay}) == LINK_DO_ARM_RETRY)
        arm(link, delay);
}

void link__ready(struct link *link)
{
    enum link_state from = link__state(link);

    if (from == LINK_HANDSHAKING || from == LINK_RESETTING)
        link->idle_since = link__now(link__core(link)); /* before it takes its place among the idle ones */
    if (step(link, LINK_EV_READY, (struct detail){0}) != LINK_DO_SERVE)
        return;
    if (from == LINK_HANDSHAKING) {
        serve(link);
    } else { /* clean again: its age goes on */
        link__arm_ready(link);
        link__core(link)->keeper->served(link);
    }
}

/* ---- while READY ---- */

static double age_due(const struct link *link)
{
    double max_age = link->owner->terms->max_age;

    return max_age > 0 ? link->since + max_age * (1 - 0.1 * link->age_draw / 65536) : INFINITY;
}

static double recycle_due(const struct link *link)
{
    return link->bits & LINK_RECYCLED ? link->since + (double)link->recycled_after : INFINITY;
}

void link__arm_ready(struct link *link)
{
    struct link_core *core = link__core(link);
    double now = link__now(core), proof = link->since + link->owner->terms->backoff.stable_after;

    if (link->bits & LINK_UNPROVEN && proof <= now) {
        link__set_bits(link, LINK_UNPROVEN, 0);
        core->keeper->proven(link);
    }
    if (!link->retire && (recycle_due(link) <= now || age_due(link) <= now)) {
        link->retire = recycle_due(link) <= now ? LINK_DRAINED : LINK_TOO_OLD;
        core->keeper->aged(link);
        if (link__state(link) != LINK_READY)
            return; /* else it has holders, who still want to know of a peer that has died */
    }
    double due = link->retire ? INFINITY : age_due(link);
    if (!link->retire && recycle_due(link) < due)
        due = recycle_due(link);
    if (link->bits & LINK_UNPROVEN && proof < due)
        due = proof;
    due = link__min(due, link__heartbeat_due(link));
    link__heartbeat_armed(link);
    link__arm_at(link, due);
}

void link__retire_at(struct link *link, double due)
{
    link__set_bits(link, 0, LINK_RECYCLED);
    link->recycled_after = (float)(due - link->since);
    if (link__state(link) == LINK_READY)
        link__arm_ready(link);
}

void link__clean(struct link *link)
{
    if (step(link, LINK_EV_RESET, (struct detail){0}) == LINK_DO_CLEAN)
        arm(link, link->owner->terms->reset_timeout);
}

void link__drain(struct link *link)
{
    assert(link->retire); /* who drains it has said why */
    if (step(link, LINK_EV_DRAIN, (struct detail){0}) != LINK_DO_FINISH)
        return;
    arm(link, link->owner->terms->drain_timeout);
    link__drained(link);
}

void link__drained(struct link *link)
{
    if (link__state(link) != LINK_DRAINING || link__held(link) || link__is_delivering(link))
        return;
    double answer_due = link__answer_due(link); /* no probe is left without its answer */
    if (answer_due > link__now(link__core(link)))
        link__timer_set(link__core(link), &link->timer, link__min(answer_due, link->timer.due));
    else
        link__end(link, (enum link_reason)link->retire, 0);
}

void link__part(struct link *link, enum link_reason reason)
{
    link->retire = (uint8_t)reason;
    if (link__answer_due(link) > link__now(link__core(link)))
        link__drain(link);
    else
        link__end(link, reason, 0);
}

/* ---- ending ---- */

static void lose_leases(struct link *link, enum link_reason reason, int system_errno)
{
    if (link__is_shared(link)) {
        for (struct link_stream *stream = link__shared(link)->used, *next; stream; stream = next) {
            next = stream->next; /* one whose winner was not told yet is free at once */
            if (stream->channel.state == CHANNEL_HELD)
                link__lose(&stream->channel, reason, system_errno, LINK_LOST_BY_US);
        }
    } else if (link->channel.state == CHANNEL_HELD) {
        link__lose(&link->channel, reason, system_errno, LINK_LOST_BY_US);
    }
}

static void say_goodbye(struct link *link, enum link_reason reason)
{
    const struct protocol *protocol = link->owner->protocol;

    if (protocol->leave && link__was_ours(reason) &&
        (link__state(link) == LINK_READY || link__state(link) == LINK_DRAINING)) {
        link__core(link)->hooks++;
        protocol->leave(&link->protocol);
        link__core(link)->hooks--;
    }
}

static void shut(struct link *link, bool quiet)
{
    struct link_core *core = link__core(link);

    link__timer_clear(core, &link->timer);
    if (link->bits & LINK_WATCHED)
        core->driver->ops->io_stop(core->driver, &link->io);
    if (link->bits & LINK_KEPT)
        link__forget_attempt(link);
    if (link->bits & LINK_STARTED && link->owner->protocol->end)
        link->owner->protocol->end(&link->protocol);
    link->owner->transport->close(&link->transport, quiet);
    link->transport.fd = -1;
    link__set_bits(link, LINK_WATCHED | LINK_STARTED | LINK_KEPT, 0);
    link->interest = 0;
    if (link__is_shared(link)) {
        link__set_room(link, 0);
        link__gathers_no_more(link);
    }
}

static void begin_end(struct link *link)
{
    struct link_core *core = link__core(link);

    link__set_bits(link, 0, LINK_ENDING);
    if (core->keeper->ending)
        core->keeper->ending(link);
}

/* Who says why it sends us away, and then hangs up, has said the reason. */
static enum link_reason true_reason(const struct link *link, enum link_reason reason)
{
    if (link__is_sent_away(link) && (reason == LINK_CLOSED_BY_PEER || reason == LINK_RESET))
        return (enum link_reason)link->retire;
    return reason;
}

void link__end(struct link *link, enum link_reason reason, int system_errno)
{
    struct link_core *core = link__core(link);
    struct link_end end = {.system_errno = system_errno, .from = link__state(link)};

    if (!link__is_open(link) || link->bits & LINK_ENDING) {
        core->counts.ignored++;
        return;
    }
    end.reason = reason = true_reason(link, reason);
    link__enter(core);
    end.kind = link__kind_of_end(link, reason);
    begin_end(link);
    lose_leases(link, reason, system_errno); /* before its hooks run: no holder of it is left that they might reach */
    say_goodbye(link, reason);
    shut(link, false);
    core->ends[reason]++;
    struct link_next next = core->keeper->ended(link, &end);
    link__forget_words(link->owner, reason);
    link__set_bits(link, LINK_ENDING, 0);
    if (step(link, next.event, (struct detail){reason, system_errno, next.delay}) == LINK_DO_ARM_RETRY)
        arm(link, next.delay);
    core->keeper->settled(link, &end);
    link__leave(core);
}

static void stop(struct link *link, enum link_reason reason, bool quiet)
{
    struct link_core *core = link__core(link);

    if (link->bits & LINK_ENDING || link__state(link) == LINK_IDLE || link__state(link) == LINK_CLOSED)
        return;
    begin_end(link);
    if (link__is_open(link)) {
        lose_leases(link, reason, 0);
        if (!quiet)
            say_goodbye(link, reason);
        shut(link, quiet);
        link__forget_words(link->owner, reason);
        core->ends[reason]++;
    }
    link__set_bits(link, LINK_ENDING, 0);
    link__timer_clear(core, &link->timer);
    step(link, LINK_EV_STOP, (struct detail){.reason = reason});
}

void link__stop(struct link *link, enum link_reason reason)
{
    stop(link, reason, false);
}

void link__forget(struct link *link)
{
    stop(link, LINK_STOPPED, true);
}

/* ---- led away ---- */

void link__led_away(struct link *link, enum link_reason reason, const char *text, bool is_left)
{
    struct link_core *core = link__core(link);

    if (!reason)
        reason = LINK_CLOSED_BY_PEER;
    if (reason == LINK_CLOSED_BY_PEER && !is_left && !link__has_served(link)) {
        reason = LINK_SENT_AWAY; /* a peer that shakes hands and leaves would be dialled in a circle */
        text = "it left before it had answered anything";
    }
    if (link__is_fault(reason) && !link__is_sent_away(link)) {
        transport_fail(&link->transport, reason, 0, text);
        if (is_left && core->keeper->sent_away) {
            core->keeper->sent_away(link, reason);
            link->is_judged = true;
            link__forget_words(
                link->owner, reason); /* they are the host's: the next of its links to fail has its own */
        }
    }
    if (!link__is_sent_away(link))
        link->retire = (uint8_t)reason;
    link__drain(link);
}
