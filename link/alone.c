/* alone.c - a link on its own: the reconnecting client of a program with one upstream.
 *
 * It keeps its own history and answers by its policy. All links on their own of one driver share a core. What its
 * owner is told is noted when it happens and told at the end of the turn, in order; an attempt begins after that. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "backoff/backoff.h"
#include "link/internal.h"
#include "link/options.h"

enum note_kind {
    NOTE_CONNECTING,
    NOTE_CONNECTED,
    NOTE_DISCONNECTED,
    NOTE_RECONNECT,
    NOTE_STOPPED
};

struct note {
    enum note_kind kind;
    enum link_reason reason;
    unsigned attempt;
    double delay;
};

enum {
    NOTES = 16
}; /* more than one turn brings: an attempt that fails is four */

struct alone {
    struct link_owner owner; /* first: a link's owner is this */
    struct link *link;
    struct link_options options;
    struct link_terms terms;
    struct pool_observer observer;
    struct backoff_history history;
    double first_failure, lost_at, last_reconnect;
    unsigned reconnects;
    bool wanted; /* link_start() was called: the attempt begins at the end of this turn */
    bool was_ready, freed;
    bool starts_over; /* its attempt is given up, and that is no failure */
    int fault_errno;  /* of link->fault */
    struct note notes[NOTES];
    unsigned n_notes;
    struct alone *prev, *next, **list; /* in its core's `waiting` or `telling`, or in none */
    struct alone *all_prev, *all_next; /* in its core's `all` */
    size_t size;                       /* of this block; texts follow */
};

/** The core of all links on their own of one driver. */
struct alone_core {
    struct link_core core; /* first */
    struct alone *all;
    struct alone *waiting; /* have something to be told, or to begin, at the end of the turn */
    struct alone *telling; /* the same, of the turn that ends now */
};

static struct alone *of(const struct link *link)
{
    return (struct alone *)link->owner;
}
static struct alone_core *core_of(const struct alone *alone)
{
    return (struct alone_core *)alone->owner.core;
}

static void enlist(struct alone *alone)
{
    struct alone_core *all = core_of(alone);

    if (!alone->list) {
        alone->list = &all->waiting;
        DL_APPEND(all->waiting, alone);
    }
    link__later(&all->core);
}

static void delist(struct alone *alone)
{
    if (alone->list)
        DL_DELETE(*alone->list, alone);
    alone->list = NULL;
}

static void add_note(struct alone *alone, struct note note)
{
    if (alone->n_notes && note.kind == NOTE_STOPPED && alone->notes[alone->n_notes - 1].kind == NOTE_STOPPED)
        return;                     /* stopped, started and stopped again before anybody was told */
    assert(alone->n_notes < NOTES); /* none may be lost: DISCONNECTED frees the channel */
    alone->notes[alone->n_notes++] = note;
    enlist(alone);
}

/* ---- its answers as a keeper ---- */

static void count_failure(struct alone *alone, const struct link_end *end)
{
    double now = link__now(alone->owner.core);

    if (!alone->history.attempt++)
        alone->first_failure = now;
    alone->history.elapsed = now - alone->first_failure;
    alone->history.reason = (int)end->reason;
}

/* Soon, but not all that heard of it in the same instant. */
static double soon(const struct alone *alone)
{
    return alone->terms.backoff.reconnect_spread * link__draw(alone->owner.core);
}

static struct link_next on_ended(struct link *link, const struct link_end *end)
{
    struct alone *alone = of(link);
    bool had_been_ready = end->from >= LINK_READY; /* what ends is open */
    double delay;

    if (alone->starts_over)
        return (struct link_next){LINK_EV_END_RETRY, alone->history.last_delay = soon(alone)};
    link__note_end(&alone->owner, end->reason, end->system_errno);
    if (had_been_ready)
        alone->lost_at = link__now(alone->owner.core);
    count_failure(alone, end);
    if (alone->options.fail_first && !alone->was_ready)
        return (struct link_next){LINK_EV_END_OUT, 0};
    delay = backoff_delay(&alone->terms.backoff, &alone->history, link__draw(alone->owner.core));
    if (delay < 0)
        return (struct link_next){LINK_EV_END_OUT, 0};
    alone->history.last_delay = delay;
    return (struct link_next){LINK_EV_END_RETRY, delay};
}

static void on_settled(struct link *link, const struct link_end *end)
{
    struct alone *alone = of(link);

    if (link__state(link) == LINK_OFFLINE)
        add_note(alone, (struct note){.kind = NOTE_STOPPED, .reason = end->reason});
    else
        add_note(alone, (struct note){.kind = NOTE_RECONNECT,
                            .reason = end->reason,
                            .attempt = alone->history.attempt,
                            .delay = alone->history.last_delay});
}

static void on_moved(struct link *link, const struct link_transition *transition)
{
    struct alone *alone = of(link);
    struct link_transition told = *transition;

    told.attempt = alone->history.attempt;
    if (told.to == LINK_CONNECTING)
        add_note(alone, (struct note){.kind = NOTE_CONNECTING, .attempt = alone->history.attempt + 1});
    if (alone->observer.transition)
        alone->observer.transition(alone->observer.data, NULL, &told);
}

static void on_served(struct link *link)
{
    struct alone *alone = of(link);

    if (link__held(link) || !link__has_room(link))
        return;
    if (alone->lost_at > 0) {
        alone->last_reconnect = link__now(alone->owner.core) - alone->lost_at;
        alone->reconnects++;
    }
    alone->lost_at = 0;
    alone->was_ready = true;
    if (link__lease(link, NULL))
        add_note(alone, (struct note){.kind = NOTE_CONNECTED});
    else if (link__has_room(link)) /* no memory for the channel: another attempt may find some */
        link__end(link, LINK_NO_MEMORY, 0);
}

static void on_lost(struct channel *channel, enum link_reason reason, int system_errno, bool safe_to_repeat)
{
    struct alone *alone = of(channel->link);

    (void)system_errno, (void)safe_to_repeat;
    if (alone->n_notes && alone->notes[alone->n_notes - 1].kind == NOTE_CONNECTED) {
        alone->n_notes--; /* gone before its owner heard of it: it never does */
        link__told(channel);
        return;
    }
    add_note(alone, (struct note){.kind = NOTE_DISCONNECTED, .reason = reason});
}

/* Nobody gives this channel back: what its owner has met ends the link at the end of the turn, when the owner has left
 * the call that said so. */
static void on_faulted(struct link *link, int system_errno)
{
    of(link)->fault_errno = system_errno;
    enlist(of(link));
}

/* A channel that its peer ended on a link in doubt is followed by the next once that is over. */
static void on_trusted(struct link *link)
{
    if (link__state(link) == LINK_READY && !link->tells)
        on_served(link);
}

static void on_proven(struct link *link)
{
    of(link)->history = (struct backoff_history){0};
}

static void on_retry(struct link *link)
{
    of(link)->wanted = true; /* begun in turn(), once its owner has heard of the last one's end */
    enlist(of(link));
}

static void on_aged(struct link *link)
{
    link__drain(link);
}

static void on_rang(struct link_core *core, struct link_node *node)
{
    (void)core, (void)node;
}

static void on_slept(struct link_core *core)
{
    struct alone *alone;

    DL_FOREACH2(((struct alone_core *)core)->all, alone, all_next)
    link_network_changed(alone->link);
}

/* ---- telling ---- */

/* The channel alone was over, of a shared link that is there: its owner has another, or the link is done. */
static void go_on(struct alone *alone)
{
    if (alone->freed || alone->link->tells)
        return;
    if (link__state(alone->link) == LINK_READY)
        on_served(alone->link);
    else
        link__drained(alone->link);
}

static void tell(struct alone *alone, const struct note *note)
{
    const struct link_options *to = &alone->options;
    struct link *link = alone->link;

    switch (note->kind) {
    case NOTE_CONNECTING:
        if (to->connecting)
            to->connecting(link, note->attempt);
        break;
    case NOTE_CONNECTED:
        if (to->connected)
            to->connected(link, link__own_channel(link));
        break;
    case NOTE_DISCONNECTED:
        link__told(link__own_channel(link));
        if (to->disconnected)
            to->disconnected(link, note->reason);
        go_on(alone);
        break;
    case NOTE_RECONNECT:
        if (to->reconnect)
            to->reconnect(link, note->attempt, note->delay);
        break;
    case NOTE_STOPPED:
        if (to->stopped)
            to->stopped(link, note->reason);
        break;
    }
}

static void tell_all(struct alone *alone)
{
    struct note notes[NOTES];
    unsigned n = alone->n_notes;

    memcpy(notes, alone->notes, sizeof notes);
    alone->n_notes = 0;
    for (unsigned i = 0; i < n && !alone->freed; i++)
        tell(alone, &notes[i]);
}

static void end_faulted(struct alone *alone)
{
    struct link *link = alone->link;

    if (link->fault && link__is_open(link))
        link__end(link, (enum link_reason)link->fault, alone->fault_errno);
}

static void begin(struct alone *alone)
{
    enum link_state state = link__state(alone->link);

    if (!alone->wanted || alone->link->tells)
        return;
    alone->wanted = false;
    if (state == LINK_IDLE || state == LINK_OFFLINE || state == LINK_BACKOFF)
        link__open(alone->link);
}

static void on_turn(struct link_core *core)
{
    struct alone_core *all = (struct alone_core *)core;
    struct alone *alone;

    all->telling = all->waiting;
    all->waiting = NULL;
    for (alone = all->telling; alone; alone = alone->next)
        alone->list = &all->telling;
    while ((alone = all->telling)) {
        end_faulted(alone);
        delist(alone);
        tell_all(alone);
        if (alone->freed)
            continue;
        begin(alone);
        if (alone->wanted)
            enlist(alone);
    }
}

static void on_buried(struct link_owner *owner)
{
    struct alone *alone = (struct alone *)owner;

    link__note(owner, NULL);
    link__release(owner->core->env, alone, alone->size);
}

static bool on_over(struct link_core *core)
{
    return !((struct alone_core *)core)->all && !core->dead;
}

static void on_gone(struct link_core *core)
{
    const struct linkpool_env *env = core->env;

    link__core_free(core);
    link__release(env, core, sizeof(struct alone_core));
}

static const struct link_keeper alone_keeper = {
    .ended = on_ended,
    .moved = on_moved,
    .served = on_served,
    .settled = on_settled,
    .lost = on_lost,
    .faulted = on_faulted,
    .proven = on_proven,
    .trusted = on_trusted,
    .retry = on_retry,
    .aged = on_aged,
    .rang = on_rang,
    .turn = on_turn,
    .slept = on_slept,
    .buried = on_buried,
    .over = on_over,
    .gone = on_gone,
};

/* ---- its public face ---- */

/* Links of a pool are the pool's: whoever has one by channel_link() may look, and no more. */
static bool is_alone(const struct link *link)
{
    return link__core(link)->keeper == &alone_keeper;
}

static struct link_core *core_for(struct driver *driver, const struct linkpool_env *env)
{
    struct link_core *core = driver->owner;

    if (!core) {
        struct alone_core *all = link__alloc(env, sizeof *all);
        if (!all)
            errno = ENOMEM;
        else
            link__core_init(&all->core, driver, env, &alone_keeper);
        return (struct link_core *)all;
    }
    if (core->keeper != &alone_keeper || core->env != env) {
        errno = EBUSY;
        return NULL;
    }
    return core;
}

static uint16_t put_text(struct alone *alone, uint16_t at, const char *text)
{
    strcpy((char *)(alone + 1) + at, text);
    return (uint16_t)(at + strlen(text) + 1);
}

static void fill(struct alone *alone, const struct link_options *options, const char *address)
{
    struct link_owner *owner = &alone->owner;

    alone->options = *options;
    alone->terms = (struct link_terms){.connect_timeout = options->connect_timeout,
        .reset_timeout = options->reset_timeout,
        .drain_timeout = options->drain_timeout,
        .read_timeout = options->read_timeout,
        .backoff = backoff__whole(options->backoff),
        .heartbeat = link__heartbeat_whole(options->heartbeat)};
    if (options->observer)
        link__take_observer(&alone->observer, options->observer);
    owner->transport = options->transport;
    owner->protocol = options->protocol;
    owner->terms = &alone->terms;
    owner->address_text = (char *)(alone + 1);
    owner->server_name = put_text(alone, 0, address);
    owner->local = put_text(alone, owner->server_name, options->server_name ? options->server_name : "");
    put_text(alone, owner->local, options->local ? options->local : "");
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) : 0;
}

struct link *link_new(struct driver *driver, const char *address, const struct link_options *given)
{
    struct link_options options;
    struct link_address parsed;
    char text[LINK_ADDRESS_TEXT];
    size_t size;

    link__options_take(&options, given);
    if (!driver || !address || link_options_check(&options, NULL, 0) ||
        link_address_parse(address, strlen(address), &parsed, NULL, 0)) {
        errno = EINVAL;
        return NULL;
    }
    struct link_core *core = core_for(driver, options.env);
    if (!core)
        return NULL;
    link_address_format(&parsed, text);
    size = sizeof(struct alone) + strlen(text) + length_of(options.server_name) + length_of(options.local) + 3;
    link__enter(core);
    struct alone *alone = link__alloc(core->env, size);
    if (alone) {
        alone->size = size;
        alone->owner.core = core;
        fill(alone, &options, text);
        if (!(alone->link = link__new(&alone->owner))) {
            link__release(core->env, alone, size);
            alone = NULL;
        }
    }
    if (alone)
        DL_APPEND2(((struct alone_core *)core)->all, alone, all_prev, all_next);
    link__leave(core); /* without links it goes again */
    if (!alone)
        errno = ENOMEM;
    return alone ? alone->link : NULL;
}

int link_start(struct link *link)
{
    struct alone *alone = of(link);
    enum link_state state = link__state(link);

    if (!is_alone(link))
        return LINKPOOL_ESTATE;
    if (alone->wanted || (state != LINK_IDLE && state != LINK_OFFLINE)) {
        link__core(link)->counts.ignored++;
        return 0;
    }
    alone->history = (struct backoff_history){0};
    alone->lost_at = 0;
    alone->wanted = true;
    enlist(alone);
    return 0;
}

void link_stop(struct link *link)
{
    struct alone *alone = of(link);
    struct link_core *core = link__core(link);

    if (!is_alone(link))
        return;
    if (link__state(link) == LINK_IDLE && !alone->wanted) {
        core->counts.ignored++;
        return;
    }
    link__enter(core);
    alone->wanted = false;
    if (link__is_open(link))
        link__note_end(&alone->owner, LINK_STOPPED, 0);
    link__stop(link, LINK_STOPPED);
    alone->history = (struct backoff_history){0};
    alone->lost_at = 0;
    add_note(alone, (struct note){.kind = NOTE_STOPPED, .reason = LINK_STOPPED});
    link__leave(core);
}

/* One that rests stays so; one whose attempt is about to begin begins it anyway. */
static void begin_soon(struct alone *alone)
{
    struct link *link = alone->link;

    alone->history = (struct backoff_history){0};
    alone->starts_over = true;
    if (link__is_opening(link))
        link__end(link, LINK_STOPPED, 0);
    else if (link__state(link) == LINK_BACKOFF && !alone->wanted)
        link__timer_set(link__core(link), &link->timer, link__now(link__core(link)) + soon(alone));
    alone->starts_over = false;
}

int link_network_changed(struct link *link)
{
    struct link_core *core = link__core(link);

    if (!is_alone(link))
        return LINKPOOL_ESTATE;
    if (of(link)->freed)
        return 0;
    link__enter(core);
    if (link__state(link) == LINK_READY)
        link__doubt(link);
    else
        begin_soon(of(link));
    link__leave(core);
    return 0;
}

void link_free(struct link *link)
{
    if (!link || !is_alone(link) || of(link)->freed)
        return;
    struct alone *alone = of(link);
    struct link_core *core = link__core(link);

    link__enter(core);
    alone->freed = true;
    alone->wanted = false;
    link__stop(link, LINK_STOPPED);
    link->tells = 0; /* nobody will be told */
    delist(alone);
    link__free(link);
    DL_DELETE2(core_of(alone)->all, alone, all_prev, all_next);
    link__leave(core);
}

void *link_data(const struct link *link)
{
    return is_alone(link) ? of(link)->options.data : NULL;
}

void link__alone_stats(const struct link *link, struct link_stats *stats)
{
    if (!is_alone(link))
        return;
    stats->attempt = of(link)->history.attempt;
    stats->reconnects = of(link)->reconnects;
    stats->last_reconnect = of(link)->last_reconnect;
}
