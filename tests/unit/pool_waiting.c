/* pool_waiting.c - those in line and those about to be told: when they are told, what comes in between, what is said
 * of them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

/* One link a host: who comes second waits. */
static struct testing_peer *begin(struct fake_world *world)
{
    fake_world_begin(world);
    world->host.max_links = 1;
    fake_world_open(world);
    return fake_echo(world, a);
}

/* ---- between being decided and being told ---- */

/* In `done`, gives the channel back at once: who is next has won, while somebody is being told. */
struct hasty {
    struct pool_lease lease;
    struct testing_peer *peer; /* says something late then; NULL: it does not */
    unsigned done;
};

static void give_back_at_once(struct pool_lease *lease)
{
    struct hasty *hasty = lease->data;

    hasty->done++;
    pool_release(lease, POOL_REUSE);
    if (hasty->peer)
        testing_peer_say(hasty->peer, "late", 4);
}

static void ask_hastily(struct fake_world *world, struct hasty *hasty)
{
    hasty->lease.done = give_back_at_once;
    hasty->lease.data = hasty;
    cr_assert(eq(int, pool_acquire(world->pool, a, &hasty->lease), POOL_PENDING));
}

Test(pool_waiting, what_is_decided_while_telling_is_told_after_the_next_poll)
{
    struct fake_user holder = {0}, next = {0};
    struct hasty hasty = {0};
    struct fake_world world;

    begin(&world);
    fake_hold(&world, &holder, a);
    ask_hastily(&world, &hasty);
    fake_ask(&world, &next, a);
    fake_give_back(&holder);
    fake_turn(&world);
    cr_assert(eq(uint, hasty.done, 1));
    cr_assert(eq(uint, next.done, 0));
    cr_assert(eq(uint, fake_stats(&world).waiting, 0)); /* it has won */
    double told = testing_now(world.t);
    fake_turn(&world);
    cr_assert(eq(uint, next.done, 1));
    cr_assert(eq(dbl, next.told_at, told)); /* the poll did not wait */
    fake_world_end(&world);
}

/* A unix connect succeeds at once, at the end of a turn, when those told in it have been told. */
Test(pool_waiting, a_greeting_to_a_winner_who_was_not_told_is_its_to_read)
{
    struct fake_user user = {0};
    struct fake_world world;
    char bytes[8];

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, "unix:@greets", TESTING_ACCEPT);
    testing_peer_greet(peer, "hi", 2);
    fake_hold(&world, &user, "unix:@greets");
    fake_settle(&world);
    cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), 2));
    cr_assert(eq(int, memcmp(bytes, "hi", 2), 0));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

Test(pool_waiting, late_bytes_on_a_used_link_send_a_winner_who_was_not_told_back_to_its_place)
{
    struct fake_user holder = {0}, winner = {0}, behind = {0};
    struct fake_world world;
    struct hasty hasty = {0};

    hasty.peer = begin(&world);
    fake_hold(&world, &holder, a);
    ask_hastily(&world, &hasty);
    fake_ask(&world, &winner, a);
    fake_ask(&world, &behind, a);
    fake_give_back(&holder);
    fake_run(&world, 1);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_UNEXPECTED_DATA], 1));
    cr_assert(eq(uint, winner.done, 1));
    cr_assert(eq(int, winner.status, POOL_READY));
    cr_assert(not(winner.lease.reused)); /* another link */
    cr_assert(eq(uint, behind.done, 0));
    fake_exchange(&world, &winner); /* and nothing late on it */
    fake_world_end(&world);
}

/* ---- wishes ---- */

Test(pool_waiting, a_wish_to_avoid_lets_those_behind_it_pass)
{
    struct fake_user holders[2] = {0}, avoiding = {0}, plain = {0};
    struct fake_world world;

    begin(&world);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, both, 2);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &holders[i], both[i]);
    avoiding.lease.avoid = pool_target_host(target, 0);
    fake_ask(&world, &avoiding, "db");
    fake_ask(&world, &plain, "db");
    fake_give_back(&holders[0]);
    fake_settle(&world);
    cr_assert(eq(int, plain.status, POOL_READY));
    cr_assert(eq(uint, avoiding.done, 0));
    fake_give_back(&holders[1]);
    fake_settle(&world);
    cr_assert(eq(ptr, avoiding.lease.host, pool_target_host(target, 1)));
    fake_world_end(&world);
}

Test(pool_waiting, hosts_are_taken_in_turn_however_many_links_each_has)
{
    struct fake_user users[4] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    for (int i = 0; i < 2; i++)
        fake_echo(&world, both[i]);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, both, 2);
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], both[i == 3]); /* three links to one, one to the other */
    for (int i = 0; i < 4; i++)
        fake_give_back(&users[i]);
    for (int i = 0; i < 10; i++) {
        cr_assert(eq(int, fake_ask(&world, &users[0], "db"), POOL_READY));
        fake_give_back(&users[0]);
        fake_settle(&world);
    }
    cr_assert(eq(u64, fake_host_stats(pool_target_host(target, 0)).uses, 3 + 5));
    cr_assert(eq(u64, fake_host_stats(pool_target_host(target, 1)).uses, 1 + 5));
    fake_world_end(&world);
}

/* ---- what is said ---- */

Test(pool_waiting, a_deadline_met_in_the_handshake_says_so)
{
    struct fake_user user = {.lease.timeout = 1};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.protocol = &fake_hello;
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_SILENT);
    fake_ask(&world, &user, a);
    fake_run(&world, 1.5);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, user.lease.stage, POOL_STAGE_HANDSHAKE));
    fake_world_end(&world);
}

static void expect_words(const struct pool_lease *lease, const char *const *words, size_t n)
{
    char text[512];

    cr_assert(eq(int, pool_explain(lease, text, sizeof text), (int)strlen(text)));
    for (size_t i = 0; i < n; i++)
        cr_assert(ne(ptr, strstr(text, words[i]), NULL), "\"%s\" lacks %s", text, words[i]);
}

Test(pool_waiting, words_name_each_host_its_state_its_last_reason_and_the_time_left)
{
    const char *const waiting[] = {"waiting", "4 s left", a, "is backoff", "next try in 9 s", b, "is connecting",
        link_reason_text(LINK_REFUSED), "1 waiting"};
    const char *const failed[] = {linkpool_strerror(LINKPOOL_ETIMEDOUT), "connecting", link_reason_text(LINK_REFUSED)};
    const char *const full[] = {linkpool_strerror(LINKPOOL_EFULL), "max_line"};
    struct fake_user user = {.lease = {.flags = POOL_WAIT_FOR_READY}}, over = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.backoff.base = world.backoff.cap = 10;
    world.backoff.jitter = BACKOFF_NONE;
    world.host.connect_timeout = 60;
    world.options.max_line = 1;
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_REFUSE);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_target(&world, "db", &pool_round_robin, both, 2);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &over, "db"), LINKPOOL_EFULL));
    fake_run(&world, 1);
    expect_words(&user.lease, waiting, sizeof waiting / sizeof *waiting);
    expect_words(&over.lease, full, sizeof full / sizeof *full);
    fake_run(&world, 5);
    expect_words(&user.lease, failed, sizeof failed / sizeof *failed);
    fake_world_end(&world);
}

/* ---- those who look on ---- */

static struct {
    struct fake_world *world;
    unsigned by_transition, by_target, by_wait, by_delay, by_picker;
} looks;

static void look(unsigned *by)
{
    const struct pool *pool = looks.world->pool;
    struct pool_target *target = NULL;
    struct pool_host *host = NULL;
    struct pool_stats stats;
    char text[64];

    ++*by;
    if (!pool)
        return;
    pool_stats(pool, &stats, sizeof stats);
    cr_assert(eq(dbl, pool_now(pool), testing_now(looks.world->t)));
    while ((host = pool_next_host(pool, host))) {
        const struct link *link = NULL;
        cr_assert(le(uint, fake_host_stats(host).links[LINK_READY], stats.links));
        while ((link = pool_host_next_link(host, link)))
            cr_assert(ne(int, link_state(link), LINK_CLOSED));
    }
    while ((target = pool_next_target(pool, target)))
        cr_assert(lt(int, 0, pool_target_explain(target, text, sizeof text)));
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    (void)data, (void)host, (void)transition;
    look(&looks.by_transition);
}

static void on_target(void *data, const struct pool_target *target, enum link_state from, enum link_state to)
{
    (void)from;
    *(enum link_state *)data = to;
    cr_assert(eq(int, pool_target_state(target), to));
    look(&looks.by_target);
}

static void on_waited(void *data, const struct pool_lease *lease, double seconds)
{
    (void)data, (void)lease, (void)seconds;
    look(&looks.by_wait);
}

static double a_second(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    look(&looks.by_delay);
    return 1;
}

static int pick_the_first(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    (void)lease, (void)draw;
    look(&looks.by_picker);
    return pick->can(pick->hosts[0]) == POOL_HOST_DOWN ? POOL_PICK_DOWN : 0;
}

Test(pool_waiting, observers_delays_and_pickers_may_read_all_there_is)
{
    static const struct pool_picker picker = {.size = sizeof picker, .name = "first", .pick = pick_the_first};
    struct fake_user user = {.lease = {.flags = POOL_WAIT_FOR_READY}};
    enum link_state last = LINK_IDLE;
    struct pool_observer observer = {
        .size = sizeof observer, .transition = on_transition, .target = on_target, .waited = on_waited, .data = &last};
    struct fake_world world;

    looks.world = &world;
    fake_world_begin(&world);
    world.options.observer = &observer;
    world.backoff.delay = a_second;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    fake_target(&world, "db", &picker, both, 1);
    fake_ask(&world, &user, "db");
    fake_run(&world, 0.5);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(lt(uint, 0, looks.by_transition));
    cr_assert(lt(uint, 0, looks.by_target));
    cr_assert(eq(uint, looks.by_wait, 1));
    cr_assert(eq(uint, looks.by_delay, 1));
    cr_assert(lt(uint, 0, looks.by_picker));
    cr_assert(eq(int, last, LINK_READY));
    pool_free(world.pool); /* shutdown is told as well */
    world.pool = NULL;
    cr_assert(eq(int, last, LINK_CLOSED));
    fake_world_end(&world);
}
