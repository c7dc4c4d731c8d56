/* cases_v_lease.c - the cases VA1, VA7, VA9, VB1, VB6 and VC1 to VC5: whose link it is, whose answer, and whose
 * memory. */
#include "tests/conformance/cases.h"

#include <pthread.h>

static uint64_t link_of_tag(struct fake_world *world, const char *tag, bool logs_in)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = A, .tag = tag};
    struct pool_host *host = pool_host_for(world->pool, &endpoint, NULL);
    struct fake_user user = {0};

    fake_ask_host(world, &user, host);
    fake_settle(world);
    fake_exchange(world, &user);
    uint64_t id = cases_link_id(&user);
    if (logs_in)
        channel_keep_private(user.lease.channel);
    fake_give_back(&user);
    pool_host_drop(host);
    return id;
}

Test(cases, VA1_a_link_with_an_identity_is_never_anybody_elses)
{
    struct fake_world world;

    cases_peer(&world, 4);
    uint64_t x = link_of_tag(&world, "x", false), y = link_of_tag(&world, "y", false);
    uint64_t none = link_of_tag(&world, NULL, false);
    cr_assert(ne(u64, x, y));
    cr_assert(ne(u64, x, none));
    cr_assert(ne(u64, y, none));
    cr_assert(eq(u64, link_of_tag(&world, "x", true), x)); /* logs in on it: nobody has it after that */
    cr_assert(ne(u64, link_of_tag(&world, "x", false), x));
    cr_assert(eq(u64, link_of_tag(&world, NULL, true), none));
    cr_assert(ne(u64, link_of_tag(&world, NULL, false), none));
    fake_world_end(&world);
}

/* An allocator that gives the link around `where`, once it was freed, to the next that is as large. */
static const struct linkpool_env *inner;
static struct channel *where;
static void *spare;
static size_t spare_size;

static void *give_again(void *data, void *memory, size_t was, size_t size)
{
    void *again = spare;

    if (!size && (char *)memory <= (char *)where && (char *)where < (char *)memory + was) {
        spare = memory;
        spare_size = was;
        return NULL;
    }
    if (memory || !spare || size != spare_size)
        return inner->realloc(data, memory, was, size);
    spare = NULL;
    return again;
}

Test(cases, VA7_a_lease_that_is_over_reaches_no_later_link)
{
    struct fake_world world;
    struct fake_user old = {0}, user = {0};

    cases_begin(&world);
    inner = world.options.env;
    struct linkpool_env env = *inner;
    env.realloc = give_again;
    world.options.env = &env;
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    fake_hold(&world, &old, A);
    where = old.lease.channel;
    pool_release(&old.lease, POOL_DISCARD);
    cr_assert(eq(ptr, old.lease.channel, NULL));
    fake_hold(&world, &user, A);
    cr_assert(eq(ptr, user.lease.channel, where)); /* the next link lies where the first did */
    where = NULL;
    cr_assert(eq(int, pool_release(&old.lease, POOL_DISCARD), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_cancel(&old.lease), LINKPOOL_ESTATE));
    fake_exchange(&world, &user);
    fake_world_end(&world);
}

static unsigned heard;

static void count_readable(struct channel *channel)
{
    (void)channel;
    heard++;
}

static void expect_nothing_kept(struct fake_world *world, struct fake_user *user, const char *text, int status)
{
    cr_assert(eq(int, fake_ask(world, user, text), status), "%s", text);
    cr_assert(eq(ptr, user->lease.channel, NULL));
    cr_assert(eq(int, pool_release(&user->lease, POOL_REUSE), LINKPOOL_ESTATE));
}

Test(cases, VA9_no_early_return_and_no_idle_link_keeps_a_users_pointer)
{
    static const struct channel_events events = {.readable = count_readable};
    struct fake_world world;
    struct fake_user user = {0}, next = {0};

    cases_begin(&world);
    world.host.max_links = world.options.max_line = 1;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    fake_hold(&world, &user, A);
    channel_set_data(user.lease.channel, &user);
    channel_watch(user.lease.channel, &events, LINKPOOL_READ);
    fake_ask(&world, &next, A); /* in line */
    struct fake_user refused = {0};
    expect_nothing_kept(&world, &refused, A, LINKPOOL_EFULL);
    expect_nothing_kept(&world, &refused, "no such target", LINKPOOL_EADDRESS);
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(ptr, channel_data(next.lease.channel), NULL));
    testing_peer_say(peer, "!", 1);
    fake_settle(&world);
    cr_assert(eq(uint, heard, 0)); /* of the first's watcher */
    cr_assert(eq(chr, cases_read(&next), '!'));
    fake_give_back(&next);
    pool_drain(world.pool, 0, NULL, NULL);
    expect_nothing_kept(&world, &refused, A, LINKPOOL_ECLOSED);
    fake_world_end(&world);
}

/* ---- answers ---- */

enum {
    ID = 16
};

/* Answers each whole id with itself; a part of one waits for the rest of it. */
static void answer_ids(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    static char parts[64][ID];
    static size_t lengths[64], conns;
    size_t i = (size_t)testing_conn_data(conn);

    (void)data;
    if (!i) {
        testing_conn_set_data(conn, (void *)(i = ++conns));
        lengths[i % 64] = 0;
    }
    i %= 64;
    for (size_t k = 0; k < n; k++) {
        parts[i][lengths[i]++] = ((const char *)bytes)[k];
        if (lengths[i] == ID) {
            testing_conn_send(conn, parts[i], ID);
            lengths[i] = 0;
        }
    }
}

static void send_part(struct fake_user *user, char letter, size_t n)
{
    char id[ID];
    struct iovec part = {id, n};

    memset(id, letter, ID);
    if (n)
        cr_assert(eq(long, channel_writev(user->lease.channel, &part, 1), (long)n));
}

/* One sends `sent` bytes of an id, reads so many of its answer, and gives the link back; how much does the next read?
 */
static void cross(size_t sent, size_t n_read, bool settled, enum pool_disposition disposition)
{
    struct fake_world world;
    struct fake_user first = {0}, second = {0};
    char answer[2 * ID];

    struct testing_peer *peer = cases_peer(&world, 1);
    testing_peer_on(peer, &(struct testing_server){.size = sizeof(struct testing_server), .received = answer_ids});
    fake_hold(&world, &first, A);
    send_part(&first, 'a', sent);
    if (settled)
        fake_settle(&world);
    if (n_read)
        cr_assert(eq(long, channel_read(first.lease.channel, answer, n_read), (long)n_read));
    cr_assert(eq(int, pool_release(&first.lease, disposition), 0));
    fake_hold(&world, &second, A);
    bool whole = sent == n_read && (sent == 0 || sent == ID);
    if (second.lease.reused)
        cr_assert(whole, "sent %zu, read %zu", sent, n_read);
    send_part(&second, 'b', ID);
    fake_run(&world, 0.1);
    cr_assert(eq(long, channel_read(second.lease.channel, answer, sizeof answer), ID));
    for (int i = 0; i < ID; i++)
        cr_assert(eq(chr, answer[i], 'b'), "sent %zu, read %zu", sent, n_read);
    fake_world_end(&world);
}

Test(cases, VB1_given_back_at_any_byte_no_answer_reaches_the_next)
{
    for (size_t sent = 0; sent <= ID; sent++) {
        cross(sent, 0, true, POOL_REUSE);
        cross(sent, 0, false, POOL_REUSE);
        cross(sent, 0, true, POOL_DISCARD);
    }
    for (size_t n_read = 1; n_read <= ID; n_read++)
        cross(ID, n_read, true, POOL_REUSE);
}

struct crossing {
    const char *sent;
    bool answered;
    enum pool_fate fate;
};

Test(cases, VB6_a_close_that_crosses_a_request_says_what_may_be_repeated)
{
    static const struct crossing crossings[] = {
        {"", false, POOL_NOT_SENT}, {"q", false, POOL_SENT_NO_ANSWER}, {"q", true, POOL_PARTIAL}};

    for (int i = 0; i < 3; i++)
        for (int reset = 0; reset < 2; reset++) {
            struct fake_world world;
            struct fake_user user = {0}, retry = {.lease.flags = POOL_FRESH};
            char byte;
            struct testing_peer *peer = cases_peer(&world, 2);
            cases_use(&world, A);
            cr_assert(eq(int, fake_ask(&world, &user, A), POOL_READY));
            testing_peer_serve(peer, crossings[i].answered ? testing_echo : NULL, NULL);
            if (*crossings[i].sent)
                fake_send(&user, crossings[i].sent);
            fake_settle(&world);
            if (crossings[i].answered)
                cases_read(&user);
            testing_peer_cut(peer, reset ? LINK_RESET : LINK_CLOSED_BY_PEER);
            fake_settle(&world);
            cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), reset ? LINKPOOL_ELOST : 0));
            cr_assert(user.lease.reused);
            pool_release(&user.lease, POOL_DISCARD);
            cr_assert(eq(int, user.lease.fate, crossings[i].fate), "crossing %d, reset %d", i, reset);
            cr_assert(eq(u64, testing_peer_bytes(peer), 1 + strlen(crossings[i].sent))); /* none was repeated by us */
            testing_peer_serve(peer, testing_echo, NULL);
            cases_use(&world, A); /* a used link is at hand, and is not had */
            fake_hold(&world, &retry, A);
            cr_assert(not(retry.lease.reused));
            fake_world_end(&world);
        }
}

/* ---- re-entrancy ---- */

static struct fake_world *the_world;

static void free_pool(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;

    user->done++;
    pool_free(the_world->pool);
    the_world->pool = NULL;
}

static void free_from(struct channel *channel)
{
    free_pool(channel_lease(channel));
}

/* The whole matrix, each public function from each callback, is the suite `matrix`; here the end of all, from each. */
Test(cases, VC1_the_pool_may_be_freed_from_each_callback_of_a_lease)
{
    static const struct channel_events events = {.readable = free_from, .writable = free_from};

    for (int from = 0; from < 4; from++) {
        struct fake_world world;
        struct fake_user user = {0}, other = {0};
        struct testing_peer *peer = cases_peer(&world, 2);
        the_world = &world;
        fake_ask(&world, &other, A);
        fake_settle(&world);
        fake_ask(&world, &user, A);
        if (from == 0)
            user.lease.done = free_pool;
        fake_settle(&world);
        if (from == 1 || from == 2)
            channel_watch(user.lease.channel, &events, from == 1 ? LINKPOOL_READ : LINKPOOL_WRITE);
        if (from == 1)
            testing_peer_say(peer, "!", 1);
        if (from == 3) {
            user.lease.closed = free_pool;
            pool_host_drain(user.lease.host, 0);
        }
        fake_settle(&world);
        cr_assert(eq(ptr, world.pool, NULL), "from %d", from);
        cr_assert(eq(uint, other.closed, 1));
        fake_world_end(&world);
    }
}

static void *free_on_a_small_stack(void *pool)
{
    pool_free(pool);
    return NULL;
}

Test(cases, VC3_ending_18000_idle_links_takes_no_more_stack_than_one)
{
    static struct fake_user users[18000];
    static const unsigned counts[] = {1, 1000, 18000};

    for (int i = 0; i < 3; i++) {
        struct fake_world world;
        pthread_attr_t small;
        pthread_t thread;
        cases_begin(&world);
        world.host.max_links = world.options.max_links = world.options.max_line = 18000;
        fake_world_open(&world);
        fake_echo(&world, A);
        memset(users, 0, sizeof users);
        cases_ask(&world, users, counts[i], A);
        fake_run(&world, 1);
        for (unsigned k = 0; k < counts[i]; k++)
            fake_give_back(&users[k]);
        cr_assert(eq(uint, fake_stats(&world).idle, counts[i]));
        pthread_attr_init(&small);
        cr_assert(eq(int, pthread_attr_setstacksize(&small, 65536), 0));
        cr_assert(eq(int, pthread_create(&thread, &small, free_on_a_small_stack, world.pool), 0));
        pthread_join(thread, NULL);
        pthread_attr_destroy(&small);
        world.pool = NULL;
        fake_world_end(&world);
    }
}

Test(cases, VC5_the_last_waiter_may_leave_at_each_stage_of_opening)
{
    static const double at[] = {0.05, 0.15}; /* connecting, shaking hands */
    static const enum link_state states[] = {LINK_CONNECTING, LINK_HANDSHAKING};

    for (int i = 0; i < 2; i++) {
        struct fake_world world;
        struct fake_user user = {0};
        cases_begin(&world);
        world.host.protocol = &fake_session;
        fake_world_open(&world);
        testing_peer_delay(fake_echo(&world, A), 0.1, 0.1);
        fake_ask(&world, &user, A);
        fake_run(&world, at[i]);
        cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).links[states[i]], 1));
        cr_assert(eq(int, pool_cancel(&user.lease), 0));
        cr_assert(eq(uint, fake_stats(&world).waiting, 0));
        fake_run(&world, 1);
        cr_assert(eq(uint, fake_stats(&world).idle, 1)); /* kept for the next, as an idle link */
        cr_assert(eq(uint, fake_stats(&world).connecting, 0));
        cr_assert(eq(uint, user.done, 0));
        fake_world_end(&world);
    }
}
