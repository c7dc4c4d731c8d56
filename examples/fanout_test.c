/* fanout_test.c - how a server's fan-out (fanout_core.h) is tested with linkpool/testing.h: no network, no waiting.
 *
 * What runs here is the code that runs in fanout.c. It gets a pool on virtual time, and peers told to misbehave:
 * seconds pass in microseconds, and each run is like the last. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linkpool/linkpool.h>
#include <linkpool/testing.h>
#include <stdio.h>
#include <string.h>

#include "examples/fanout_core.h"

/* ---- what a test stands on: a world, a pool on its clock, a fan-out to three addresses of its network ---- */

struct scene {
    struct testing *t;
    struct pool *pool;
    struct fanout *fanout;
    struct fanout_question *question; /* the one under way, or the last; NULL: none yet */
    unsigned told;                    /* how often the question under way was said to be complete */
};

static const char *const backends[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"};

static void begin_with(struct scene *scene, const struct protocol *protocol)
{
    struct pool_host_options host;
    struct pool_options options;

    *scene = (struct scene){.t = testing_new(1)}; /* the seed: another one, other draws */
    pool_host_options_init(&host);
    host.protocol = protocol;
    pool_options_init(&options);
    options.host = &host;
    options.env = testing_env(scene->t);
    scene->pool = pool_new_on(testing_driver(scene->t), &options);
    scene->fanout = fanout_new(scene->pool, backends, 3);
    cr_assert(ne(ptr, scene->fanout, NULL));
}

static void begin(struct scene *scene)
{
    begin_with(scene, &protocol_raw);
}

/* Whatever happened, nothing is left of it. */
static void end(struct scene *scene)
{
    fanout_end(scene->question);
    fanout_free(scene->fanout);
    pool_free(scene->pool);
    cr_expect(eq(str, (char *)testing_last_misuse(scene->t), ""));
    cr_expect(eq(u32, testing_misuses(scene->t), 0));
    cr_expect(eq(u32, testing_open_descriptors(scene->t), 0));
    cr_expect(eq(sz, testing_blocks(scene->t), 0));
    testing_free(scene->t);
}

/* A backend that answers each line by saying it back. */
static struct testing_peer *add_echo(struct scene *scene, int i)
{
    struct testing_peer *peer = testing_peer_add(scene->t, backends[i], TESTING_ACCEPT);

    testing_peer_serve(peer, testing_echo, NULL);
    return peer;
}

static void on_complete(struct fanout_question *question, void *data)
{
    struct scene *scene = data;

    (void)question;
    scene->told++;
}

/* Ends the question before, if there was one, and asks another. */
static void ask(struct scene *scene, const char *line)
{
    fanout_end(scene->question);
    scene->told = 0;
    scene->question = fanout_ask(scene->fanout, line, strlen(line), on_complete, scene);
    cr_assert(ne(ptr, scene->question, NULL));
}

/* As the server does: its timer, on the same clock. */
static void on_deadline(void *data)
{
    struct scene *scene = data;

    fanout_deadline(scene->question);
}

static void ask_with_deadline(struct scene *scene, const char *line, double seconds)
{
    ask(scene, line);
    testing_at(scene->t, testing_now(scene->t) + seconds, on_deadline, scene);
}

static bool is_complete(void *data)
{
    const struct scene *scene = data;

    return fanout_is_complete(scene->question);
}

/* Runs until the question is complete, and returns how many seconds that took. */
static double run(struct scene *scene)
{
    double asked = testing_now(scene->t);

    cr_assert(testing_run_until(scene->t, is_complete, scene, 60));
    return testing_now(scene->t) - asked;
}

static void expect_answer(const struct scene *scene, unsigned i, const char *text)
{
    struct fanout_answer answer = fanout_answer(scene->question, i);

    cr_assert(ne(ptr, (char *)answer.text, NULL), "%s is missing: %s", answer.backend, answer.why);
    cr_expect(eq(str, (char *)answer.text, (char *)text));
}

/* `why` is a part of the reason. */
static void expect_missing(const struct scene *scene, unsigned i, const char *why)
{
    struct fanout_answer answer = fanout_answer(scene->question, i);

    cr_assert(eq(ptr, (char *)answer.text, NULL), "%s has answered", answer.backend);
    cr_expect(ne(ptr, strstr(answer.why, why), NULL), "%s is missing: %s", answer.backend, answer.why);
}

/* ---- the tests ---- */

Test(fanout, merges_the_answers_of_all)
{
    struct scene scene;
    char merged[256];

    begin(&scene);
    for (int i = 0; i < 3; i++)
        add_echo(&scene, i);
    ask(&scene, "hello");
    run(&scene);
    cr_expect(eq(u32, scene.told, 1));
    fanout_merge(scene.question, merged, sizeof merged);
    cr_expect(eq(str, merged, "10.0.0.1:80: hello\n10.0.0.2:80: hello\n10.0.0.3:80: hello\n3 of 3\n"));
    end(&scene);
}

Test(fanout, tells_apart_who_refuses_and_who_is_a_black_hole)
{
    struct scene scene;

    begin(&scene);
    testing_peer_add(scene.t, backends[0], TESTING_REFUSE);
    testing_peer_add(scene.t, backends[1], TESTING_BLACK_HOLE);
    add_echo(&scene, 2);
    ask(&scene, "hello");
    cr_expect(epsilon_eq(dbl, run(&scene), 3, 0.001)); /* connect_timeout: the black hole took that long */
    cr_expect(eq(u32, scene.told, 1));
    expect_missing(&scene, 0, "connection refused");
    expect_missing(&scene, 1, "timed out");
    expect_answer(&scene, 2, "hello");
    end(&scene);
}

Test(fanout, asks_no_black_hole_again_while_its_backoff_lasts)
{
    struct scene scene;
    struct testing_peer *hole;

    begin(&scene);
    hole = testing_peer_add(scene.t, backends[0], TESTING_BLACK_HOLE);
    add_echo(&scene, 1);
    add_echo(&scene, 2);
    ask(&scene, "hello");
    run(&scene);
    ask(&scene, "hello again");
    cr_expect(lt(dbl, run(&scene), 0.001));
    expect_missing(&scene, 0, "timed out"); /* the stored cause, at once */
    expect_answer(&scene, 1, "hello again");
    expect_answer(&scene, 2, "hello again");
    cr_expect(eq(u32, testing_peer_attempts(hole), 1));
    end(&scene);
}

Test(fanout, waits_no_longer_than_the_deadline)
{
    struct scene scene;
    char merged[256];

    begin(&scene);
    add_echo(&scene, 0);
    testing_peer_add(scene.t, backends[1], TESTING_SILENT);
    testing_peer_drip(add_echo(&scene, 2), 1, 0.2); /* a byte each 0.2 s */
    ask_with_deadline(&scene, "hello", 0.5);
    cr_expect(epsilon_eq(dbl, run(&scene), 0.5, 0.001));
    cr_expect(eq(u32, scene.told, 0)); /* who set the deadline knows */
    fanout_merge(scene.question, merged, sizeof merged);
    cr_expect(eq(str, merged,
        "10.0.0.1:80: hello\n10.0.0.2:80 is missing: no answer in time\n"
        "10.0.0.3:80 is missing: only part of its answer in time\n1 of 3\n"));
    end(&scene);
}

Test(fanout, tells_what_a_black_hole_was_doing_at_the_deadline)
{
    struct scene scene;

    begin(&scene);
    add_echo(&scene, 0);
    testing_peer_add(scene.t, backends[1], TESTING_BLACK_HOLE);
    add_echo(&scene, 2);
    ask_with_deadline(&scene, "hello", 0.5);
    run(&scene);
    expect_missing(&scene, 1, "connecting");
    end(&scene);
}

Test(fanout, does_not_take_half_an_answer_for_a_whole_one)
{
    struct scene scene;

    begin(&scene);
    testing_peer_cut_after(add_echo(&scene, 0), 3, LINK_RESET);
    testing_peer_cut_after(add_echo(&scene, 1), 3, LINK_CLOSED_BY_PEER);
    add_echo(&scene, 2);
    ask(&scene, "hello");
    run(&scene);
    expect_missing(&scene, 0, "in the middle of the answer");
    expect_missing(&scene, 1, "in the middle of the answer");
    expect_answer(&scene, 2, "hello");
    end(&scene);
}

/* ---- a handshake: the backend greets with a line before it may be asked ---- */

static int take_greeting(struct protocol_link *link, unsigned events)
{
    char bytes[64];
    ssize_t n = protocol_read(link, bytes, sizeof bytes);

    (void)events;
    if (n < 0)
        return n == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
    return bytes[n - 1] == '\n' ? protocol_ready(link) : 0;
}

static int expect_greeting(struct protocol_link *link)
{
    (void)link; /* the backend speaks first */
    return 0;
}

Test(fanout, keeps_the_connection_of_a_slow_handshake_for_the_next_question)
{
    struct protocol greeted = protocol_raw;
    struct testing_peer *peers[3];
    struct scene scene;

    greeted.start = expect_greeting;
    greeted.input = take_greeting;
    begin_with(&scene, &greeted);
    for (int i = 0; i < 3; i++) {
        peers[i] = add_echo(&scene, i);
        testing_peer_greet(peers[i], "ready\n", 6);
    }
    testing_peer_delay(peers[1], 0, 2); /* until it greets, and until it answers */
    ask_with_deadline(&scene, "hello", 1);
    run(&scene);
    expect_missing(&scene, 1, "in the handshake");
    testing_run_for(scene.t, 1.5);
    testing_peer_delay(peers[1], 0, 0);
    ask(&scene, "hello again");
    cr_expect(lt(dbl, run(&scene), 0.001));
    expect_answer(&scene, 1, "hello again");
    cr_expect(eq(u32, testing_peer_attempts(peers[1]), 1));
    end(&scene);
}

/* ---- connections that had served die as the next question arrives ---- */

/* Answers the first line of a connection's life, and hangs up at the second. */
static void answer_once(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    (void)data;
    if (testing_conn_received(conn) == n)
        testing_conn_send(conn, bytes, n);
    else
        testing_conn_close(conn);
}

Test(fanout, asks_again_on_a_fresh_connection_when_a_used_one_has_died)
{
    const struct testing_server server = {.size = sizeof server, .received = answer_once};
    struct fanout_question *other;
    struct testing_peer *peer;
    struct scene scene;

    begin(&scene);
    peer = testing_peer_add(scene.t, backends[0], TESTING_ACCEPT);
    testing_peer_on(peer, &server);
    add_echo(&scene, 1);
    add_echo(&scene, 2);
    other = fanout_ask(scene.fanout, "hello", 5, NULL, NULL);
    ask(&scene, "hello, too"); /* both at once: two connections to each backend */
    run(&scene);
    cr_assert(fanout_is_complete(other));
    fanout_end(other);
    cr_expect(not(fanout_answer(scene.question, 0).repeated));
    ask(&scene, "hello again"); /* the other connection would hang up as well */
    run(&scene);
    expect_answer(&scene, 0, "hello again");
    cr_expect(fanout_answer(scene.question, 0).repeated);
    cr_expect(eq(u32, testing_peer_accepted(peer), 3));
    cr_expect(not(fanout_answer(scene.question, 1).repeated));
    end(&scene);
}
