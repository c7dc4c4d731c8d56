/* cases.c - see cases.h. */
#include "tests/conformance/cases.h"

const char *const cases_abc[4] = {A, B, C, D};

/* ---- what is watched ---- */

static char states[4096], links[65536];
static unsigned seen[LINK_STATES];

static void note(char *story, size_t size, enum link_state state)
{
    size_t n = strlen(story);

    snprintf(story + n, size - n, "%s%s", n ? " " : "", link_state_name(state));
}

static void on_target(void *data, const struct pool_target *target, enum link_state from, enum link_state to)
{
    (void)data, (void)target, (void)from;
    note(states, sizeof states, to);
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    (void)data, (void)host;
    seen[transition->to]++;
    note(links, sizeof links, transition->to);
}

static const struct pool_observer observer = {
    .size = sizeof observer, .transition = on_transition, .target = on_target};

const char *cases_states(void)
{
    return states;
}

const char *cases_links(void)
{
    return links;
}

unsigned cases_seen(enum link_state state)
{
    return seen[state];
}

void cases_forget(void)
{
    states[0] = links[0] = '\0';
    memset(seen, 0, sizeof seen);
}

/* ---- the world ---- */

void cases_begin(struct fake_world *world)
{
    fake_world_begin(world);
    world->options.observer = &observer;
    cases_forget();
}

void cases_open(struct fake_world *world)
{
    cases_begin(world);
    fake_world_open(world);
}

void cases_gaps(struct fake_world *world, double base, double factor, double cap)
{
    world->backoff = (struct backoff_policy){
        .size = sizeof world->backoff, .jitter = BACKOFF_NONE, .base = base, .factor = factor, .cap = cap};
}

struct testing_peer *cases_peer(struct fake_world *world, unsigned max_links)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.max_links = max_links;
    fake_world_open(world);
    return fake_echo(world, A);
}

/* ---- targets ---- */

struct pool_target *cases_target(struct fake_world *world, const struct pool_picker *picker, size_t n)
{
    return fake_target(world, "db", picker, cases_abc, n);
}

struct pool_target *cases_unknown(struct fake_world *world, const char *name)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    options.picker = &pool_pick_first;
    struct pool_target *target = pool_target_add(world->pool, name, &options);
    cr_assert(ne(ptr, target, NULL));
    return target;
}

void cases_update(struct pool_target *target, const char *const *addresses, size_t n)
{
    struct pool_endpoint endpoints[64];

    fake_endpoints(endpoints, addresses, n);
    cr_assert(eq(int, pool_target_update(target, endpoints, n), 0));
}

/* ---- users ---- */

void cases_use(struct fake_world *world, const char *text)
{
    struct fake_user user = {0};

    fake_hold(world, &user, text);
    fake_exchange(world, &user);
    fake_give_back(&user);
}

static bool is_told(void *data)
{
    return ((struct fake_user *)data)->status != POOL_PENDING;
}

bool cases_try(struct fake_world *world, const char *text)
{
    struct fake_user user = {0};
    struct iovec part = {"x", 1};
    char answer;

    if (fake_ask(world, &user, text) == POOL_PENDING)
        cr_assert(testing_run_until(world->t, is_told, &user, 6));
    if (user.status != POOL_READY)
        return false;
    ssize_t sent = channel_writev(user.lease.channel, &part, 1);
    fake_settle(world);
    ssize_t got = channel_read(user.lease.channel, &answer, 1);
    pool_release(&user.lease, got == 1 ? POOL_REUSE : POOL_DISCARD);
    return sent == 1 && got == 1;
}

void cases_ask(struct fake_world *world, struct fake_user *users, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        cr_assert(ge(int, fake_ask(world, &users[i], text), POOL_READY), "user %zu", i);
}

unsigned cases_count(const struct fake_user *users, size_t n, int status)
{
    unsigned count = 0;

    for (size_t i = 0; i < n; i++)
        count += users[i].status == status;
    return count;
}

int cases_wait(struct fake_world *world, struct fake_user *user, const char *text)
{
    user->lease.flags |= POOL_WAIT_FOR_READY;
    user->lease.timeout = INFINITY;
    return fake_ask(world, user, text);
}

char cases_read(struct fake_user *user)
{
    char byte;

    cr_assert(eq(long, channel_read(user->lease.channel, &byte, 1), 1));
    return byte;
}

uint64_t cases_link_id(const struct fake_user *user)
{
    struct link_stats stats;

    link_stats(channel_link(user->lease.channel), &stats, sizeof stats);
    return stats.id;
}

/* ---- a handshake of two steps ---- */

static int await_greeting(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

static int on_greeted(struct protocol_link *pl, unsigned events)
{
    char *step = pl->state, byte;
    ssize_t got;

    (void)events;
    while ((got = protocol_read(pl, &byte, 1)) == 1) {
        if (byte != (*step ? 'H' : 'G'))
            return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "another letter");
        if (++*step == 2)
            return protocol_ready(pl);
        if (protocol_write(pl, &(struct iovec){"H", 1}, 1) == LINKPOOL_ELOST)
            return LINKPOOL_ELOST;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

const struct protocol cases_greeted = {
    .size = sizeof(struct protocol), .name = "greeted", .link_size = 1, .start = await_greeting, .input = on_greeted};

/* ---- frames ---- */

enum {
    FRAME = 4
};

struct framed {
    unsigned char in[FRAME], last, last_taken;
    size_t n;
};

static bool was_taken(const struct protocol_channel *pc)
{
    const unsigned char *ids = pc->state; /* its own, and the last that the peer takes */

    return ids[0] <= ids[1];
}

static int leave_to(struct protocol_link *pl, unsigned char last)
{
    struct protocol_channel *pc = NULL;

    while ((pc = protocol_next_channel(pl, pc)))
        ((unsigned char *)pc->state)[1] = last;
    return protocol_going(pl, was_taken, LINK_NO_REASON, NULL);
}

static int on_frame(struct protocol_link *pl, const unsigned char *frame)
{
    struct protocol_channel *pc = NULL;

    if (!frame[0])
        return frame[1] == 'G'   ? leave_to(pl, frame[2])
               : frame[1] == 'N' ? protocol_set_room(pl, frame[2])
               : frame[1] == 'B' ? protocol_fail(pl, LINK_HANDSHAKE_FAILED, "too many calls")
                                 : 0;
    while ((pc = protocol_next_channel(pl, pc)))
        if (*(unsigned char *)pc->state == frame[0])
            return protocol_deliver(pc, frame + 1, 1);
    return 0;
}

static int on_frames(struct protocol_link *pl, unsigned events)
{
    struct framed *self = pl->state;
    ssize_t got;

    (void)events;
    while ((got = protocol_read(pl, self->in + self->n, FRAME - self->n)) > 0) {
        self->n = (self->n + (size_t)got) % FRAME;
        if (!self->n && on_frame(pl, (unsigned char[FRAME]){self->in[0], self->in[1], self->in[2], 0}))
            return LINKPOOL_ELOST;
    }
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    struct framed *self = pl->state;

    self->last = self->last == 255 ? 1 : self->last + 1;
    *(unsigned char *)pc->state = self->last;
    return 0;
}

static int on_send(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n)
{
    unsigned char frame[FRAME] = {*(unsigned char *)pc->state, n ? *(const unsigned char *)bytes : 0, 0, 0};
    ssize_t sent = protocol_write(pl, &(struct iovec){frame, FRAME}, 1);

    return sent == FRAME ? 0 : sent < 0 ? (int)sent : LINKPOOL_EAGAIN;
}

const struct protocol cases_shared = {.size = sizeof(struct protocol),
    .name = "framed",
    .flags = PROTOCOL_SHARED,
    .max_channels = 100,
    .link_size = sizeof(struct framed),
    .channel_size = 2,
    .input = on_frames,
    .open = on_open,
    .send = on_send};

void cases_say(struct testing_peer *peer, char letter, unsigned char value)
{
    unsigned char frame[FRAME] = {0, (unsigned char)letter, value, 0};

    cr_assert(eq(int, testing_peer_say(peer, frame, FRAME), 0));
}
