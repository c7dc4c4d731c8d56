/* heartbeat.c - asks a silent peer for a sign of life, and ends the link when none comes.
 *
 * A link that several share is asked, and one that nobody holds; one that is leased whole is its holder's. There is one
 * probe under way at a time, and no timer but the link's. Whatever comes is a sign of life. An answer must reach nobody
 * but the protocol: an exclusive link that owes one is not lent. */
#include "link/heartbeat.h"

#include <math.h>

#include "link/internal.h"

static struct link_heartbeat *of(const struct link *link)
{
    return link->bits & LINK_HEARS ? link__heartbeat(link) : NULL;
}

/* Whether, or after which others, it is lent has changed. */
static void tell_trust(struct link *link)
{
    link__core(link)->keeper->trusted(link);
}

/* One that is only waiting for its holders is still asked: they want to know. A drain with an end tells them. */
static bool may_ask(const struct link *link)
{
    return link->owner->protocol->ping && !link->is_unasked && (link__is_shared(link) || !link__held(link));
}

/* Is the time of a probe running? Of an exclusive link that goes on when other bytes came: see end_wait(). */
static bool awaits(const struct link *link)
{
    const struct link_heartbeat *heartbeat = of(link);

    return heartbeat->asking || (!link__is_shared(link) && heartbeat->owed && !heartbeat->history.misses);
}

static double next_probe(const struct link *link)
{
    const struct link_heartbeat *heartbeat = of(link);
    const struct heartbeat_policy *policy = &link->owner->terms->heartbeat;
    struct heartbeat_history history = heartbeat->history;

    history.eased = link->owner->eased;
    double interval = heartbeat_interval(policy, &history);
    if (history.misses)
        return heartbeat->sent_at + policy->timeout + interval;
    return heartbeat->heard_at + interval * (1 - policy->jitter * link->age_draw / 65536);
}

void link__heartbeat_reset(struct link *link)
{
    if (of(link))
        *of(link) = (struct link_heartbeat){.owed = 0};
}

void link__heartbeat_begin(struct link *link)
{
    if (!of(link))
        return;
    of(link)->heard_at = link__now(link__core(link));
    of(link)->history.eased = link->owner->eased;
}

double link__answer_due(const struct link *link)
{
    return of(link) && awaits(link) ? of(link)->sent_at + link->owner->terms->heartbeat.timeout : -(double)INFINITY;
}

void link__heartbeat_armed(struct link *link)
{
    if (of(link))
        of(link)->unarmed = !link__is_shared(link) && link__held(link);
}

/* Timers are set late: one that rings too early is set anew then. */
void link__heartbeat_sooner(struct link *link)
{
    double due = link__heartbeat_due(link);

    link__heartbeat_armed(link);
    if (link__state(link) == LINK_READY && (!link__node_is_set(&link->timer) || due < link->timer.due))
        link__timer_set(link__core(link), &link->timer, due);
}

void link__heartbeat_lent(struct link *link)
{
    if (!of(link) || link->owner->terms->read_timeout <= 0)
        return;
    of(link)->held_at = link__now(link__core(link));
    link__heartbeat_sooner(link);
}

/* ---- figures ---- */

static void count_interval(struct link_core *core, double interval)
{
    struct link_heartbeat_figures *figures = &core->heartbeat;
    unsigned second = interval < HEARTBEAT_SECONDS - 1 ? (unsigned)interval : HEARTBEAT_SECONDS - 1;

    if (!figures->probes || interval < figures->shortest)
        figures->shortest = interval;
    if (interval > figures->longest)
        figures->longest = interval;
    figures->sum += interval;
    figures->probes++;
    figures->of_seconds[second]++;
}

/* How many are due in one turn of the loop tells whether they come in waves. */
static void count_due(struct link_core *core)
{
    struct link_heartbeat_figures *figures = &core->heartbeat;

    if (figures->turn != core->driver->turn) {
        figures->turn = core->driver->turn;
        figures->due = 0;
    }
    if (++figures->due > figures->most_due)
        figures->most_due = figures->due;
    if (figures->due == HEARTBEAT_MANY && core->keeper->many_probes)
        core->keeper->many_probes(core, figures->due);
}

static double minute_of(double now)
{
    return (double)(uint64_t)(now / 60);
}

static void count_miss(struct link_core *core)
{
    struct link_heartbeat_figures *figures = &core->heartbeat;
    double minute = minute_of(link__now(core));

    if (figures->minute != minute) {
        figures->misses_before = figures->minute == minute - 1 ? figures->misses_now : 0;
        figures->misses_now = 0;
        figures->minute = minute;
    }
    figures->misses_now++;
    figures->misses++;
}

/* The seconds that 99 of 100 intervals were below. */
static double p99(const struct link_heartbeat_figures *figures)
{
    uint64_t n = 0, most = figures->probes - figures->probes / 100;
    unsigned second = 0;

    while (second < HEARTBEAT_SECONDS - 1 && (n += figures->of_seconds[second]) < most)
        second++;
    return second == HEARTBEAT_SECONDS - 1 ? figures->longest : link__min(second + 1, figures->longest);
}

/* Those of this minute and of the one before, by how long the two are so far. */
static double misses_a_minute(const struct link_heartbeat_figures *figures, double now)
{
    double minute = minute_of(now), length = 1 + now / 60 - minute;

    if (figures->minute == minute)
        return (figures->misses_now + figures->misses_before) / length;
    return figures->minute == minute - 1 ? figures->misses_now / length : 0;
}

void link__heartbeat_stats(const struct link_core *core, struct heartbeat_stats *stats)
{
    const struct link_heartbeat_figures *figures = &core->heartbeat;

    *stats = (struct heartbeat_stats){.probes = figures->probes,
        .misses = figures->misses,
        .transitions = figures->transitions,
        .mean = figures->probes ? figures->sum / (double)figures->probes : 0,
        .shortest = figures->shortest,
        .longest = figures->longest,
        .p99 = figures->probes ? p99(figures) : 0,
        .misses_a_minute = misses_a_minute(figures, link__now(core)),
        .due_at_once = figures->due,
        .most_due = figures->most_due};
}

/* ---- what is heard ---- */

void link__heard(struct link *link)
{
    struct link_heartbeat *heartbeat = of(link);
    bool was_suspect = link__is_suspect(link), was_doubted;

    if (!heartbeat)
        return;
    heartbeat->heard_at = link__now(link__core(link));
    if (!heartbeat->asking && !was_suspect)
        return;
    was_doubted = heartbeat->doubt == DOUBT_ASKED; /* what comes before it was asked may be of before the change */
    if (was_doubted)
        heartbeat->doubt = DOUBT_NONE;
    heartbeat->asking = false;
    heartbeat->history.misses = 0;
    heartbeat->history.streak++;
    link__core(link)->heartbeat.transitions += was_suspect;
    if (was_suspect || was_doubted)
        tell_trust(link);
    link__heartbeat_sooner(link);
    link__drained(link);
}

/* No answer is owed any more. What its round trip was may bring the next probe forward. */
static void settle(struct link *link)
{
    of(link)->owed = of(link)->unsettled = 0;
    if (!link__is_shared(link))
        tell_trust(link);
    link__heartbeat_sooner(link);
    link__drained(link);
}

/* An answer that comes late belongs to an earlier probe than the last: it tells nothing of the round trip. */
static void take_pong(struct link *link)
{
    struct link_heartbeat *heartbeat = of(link);

    link->owner->has_pong = true;
    link__heard(link); /* it may have been all that a drain waited for */
    if (!link__is_open(link) || !heartbeat->owed || --heartbeat->owed)
        return;
    heartbeat->history.round_trip = link__now(link__core(link)) - heartbeat->sent_at;
    settle(link);
}

int protocol_pong(struct protocol_link *pl)
{
    if (!pl)
        return LINKPOOL_ELOST;
    struct link *link = pl->link;
    uint64_t attempt = link->fsm.generation;

    link__enter(link__core(link));
    if (of(link) && !(link->bits & LINK_ENDING))
        take_pong(link);
    return link__leave_alive(link, attempt);
}

/* ---- easing ---- */

enum {
    QUARTER = 900, /* seconds */
    FADES = 5      /* quarters: an hour has passed */
};

static uint8_t quarter_of(const struct link *link)
{
    return (uint8_t)(uint64_t)(link__now(link__core(link)) / QUARTER);
}

/* An hour without a complaint takes one easing back: what it complained of may have been another server, or a set-up of
 * long ago. */
static void fade(const struct link *link)
{
    struct link_owner *owner = link->owner;

    if (!owner->eased || (uint8_t)(quarter_of(link) - owner->eased_at) < FADES)
        return;
    owner->eased--;
    owner->eased_at = quarter_of(link);
}

/* Links that were asked before the last easing complain of what was eased already. */
int protocol_ping_less(struct protocol_link *pl)
{
    if (!pl)
        return LINKPOOL_ELOST;
    struct link_owner *owner = pl->link->owner;
    if (!of(pl->link) || of(pl->link)->history.eased != owner->eased)
        return 0;
    if (owner->eased < HEARTBEAT_EASED)
        owner->eased++;
    owner->eased_at = quarter_of(pl->link);
    return 0;
}

/* ---- doubt ---- */

bool link__can_be_asked(const struct link *link)
{
    return of(link) && link->owner->protocol->ping && link->owner->terms->heartbeat.interval > 0;
}

/* The answer of a probe under way may have come before the change: it is not waited for any more. */
bool link__doubt(struct link *link)
{
    struct link_heartbeat *heartbeat = of(link);

    if (!link__can_be_asked(link))
        return false;
    heartbeat->doubt = DOUBT_CAST;
    heartbeat->asking = false;
    tell_trust(link);
    link__heartbeat_sooner(link);
    return true;
}

static bool must_ask(const struct link *link)
{
    return of(link)->doubt == DOUBT_CAST && link__can_be_asked(link) && may_ask(link);
}

/* ---- what is due ---- */

/* A link leased whole is not asked, but its silence may be bounded, from when on it is leased. */
static double silence_due(const struct link *link)
{
    double bound = link->owner->terms->read_timeout;

    return bound > 0 && link__held(link) ? link__max(of(link)->heard_at, of(link)->held_at) + bound : (double)INFINITY;
}

/* A holder that has paused reading hears nothing: the peer is not to blame. */
static bool is_silent(const struct link *link)
{
    if (silence_due(link) > link__now(link__core(link)))
        return false;
    if (link->interest & LINKPOOL_READ)
        return true;
    of(link)->heard_at = link__now(link__core(link));
    return false;
}

double link__heartbeat_due(const struct link *link)
{
    double due = (double)INFINITY;

    if (!of(link))
        return due;
    if (must_ask(link))
        due = link__now(link__core(link));
    else if (awaits(link))
        due = link__answer_due(link);
    else if (may_ask(link))
        due = next_probe(link);
    return link__min(due, silence_due(link));
}

static void ask(struct link *link)
{
    struct link_core *core = link__core(link);
    struct link_heartbeat *heartbeat = of(link);

    count_interval(core, link__now(core) - link__max(heartbeat->heard_at, heartbeat->sent_at));
    count_due(core);
    heartbeat->sent_at = link__now(core);
    heartbeat->asking = true;
    heartbeat->owed++;
    if (heartbeat->doubt)
        heartbeat->doubt = DOUBT_ASKED;
    heartbeat->history.probes++;
    fade(link);
    heartbeat->history.eased = link->owner->eased;
    if (!link__is_shared(link))
        tell_trust(link); /* it is lent to nobody until it has answered */
    /* What was not asked is not answered: counted all the same, it would hide every later answer's round trip. */
    if (link->owner->protocol->ping(&link->protocol) < 0 && link__is_shared(link) && heartbeat->owed)
        heartbeat->owed--;
}

/* A peer that answers every probe too late is alive, but its exclusive link would never be lent again. */
static bool is_late_for_good(const struct link *link)
{
    struct link_heartbeat *heartbeat = of(link);

    if (link__is_shared(link) || heartbeat->unsettled == UINT16_MAX)
        return false;
    return ++heartbeat->unsettled > link->owner->terms->heartbeat.misses;
}

/* One that nobody holds is not worth a second probe when its network has changed: another is sooner there. */
static bool is_given_up(const struct link *link)
{
    const struct link_heartbeat *heartbeat = of(link);

    return heartbeat->history.misses >= link->owner->terms->heartbeat.misses || (heartbeat->doubt && !link__held(link));
}

static bool miss(struct link *link)
{
    struct link_core *core = link__core(link);
    struct link_heartbeat *heartbeat = of(link);

    heartbeat->asking = false;
    heartbeat->history.streak = 0;
    count_miss(core);
    heartbeat->history.misses++;
    if (is_late_for_good(link) || is_given_up(link)) {
        link__end(link, LINK_HEARTBEAT_LOST, 0);
        return false;
    }
    if (heartbeat->history.misses == 1) {
        core->heartbeat.transitions++;
        tell_trust(link);
    }
    return true;
}

/* The time of a probe is up. False: the link has ended. */
static bool end_wait(struct link *link)
{
    if (of(link)->asking || link->owner->has_pong)
        return miss(link);
    if (of(link)->owed > 1) { /* answers that cannot be told apart: it is never known to be clean again */
        link__end(link, LINK_HEARTBEAT_LOST, 0);
        return false;
    }
    settle(link); /* other bytes came, and of this protocol they are the answer */
    return true;
}

bool link__heartbeat_rang(struct link *link)
{
    double now = link__now(link__core(link));

    if (!of(link))
        return true;
    if (is_silent(link)) {
        link__end(link, LINK_HEARTBEAT_LOST, 0);
        return false;
    }
    if (!must_ask(link) && awaits(link) && link__answer_due(link) <= now && !end_wait(link))
        return false;
    if (must_ask(link) || (!awaits(link) && may_ask(link) && next_probe(link) <= now))
        ask(link);
    return link__state(link) == LINK_READY; /* the next attempt begins at the end of the turn at the earliest */
}
