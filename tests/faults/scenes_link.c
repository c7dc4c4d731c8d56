/* scenes_link.c - scenarios of links on their own, of handles that outside code keeps, and of the words of an end. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/faults/scenes.h"

/* ---- links on their own ---- */

static struct link *start(struct scene *scene, unsigned i, const struct protocol *protocol)
{
    struct link_options options;

    scene_link_options(scene, &options);
    options.protocol = protocol;
    return scene_link(scene, i, &options);
}

static void alone(struct scene *scene)
{
    start(scene, 0, &protocol_raw);
}
SCENARIO(alone);

static void alone_and_shared(struct scene *scene)
{
    start(scene, 0, &fake_shared);
}
SCENARIO(alone_and_shared);

static void alone_with_a_handshake(struct scene *scene)
{
    start(scene, 0, &fake_session);
    scene_run(scene, 3);
}
SCENARIO(alone_with_a_handshake);

static void three_on_a_driver(struct scene *scene)
{
    for (unsigned i = 0; i < SCENE_LINKS; i++)
        start(scene, i, i ? &protocol_raw : &fake_shared);
    scene_run(scene, 1);
    link_free(scene->links[1]);
    scene->links[1] = NULL;
}
SCENARIO(three_on_a_driver);

static void alone_and_lost(struct scene *scene)
{
    start(scene, 0, &protocol_raw);
    start(scene, 1, &fake_shared);
    for (unsigned i = 0; i < 3; i++) {
        scene_run(scene, 1);
        testing_peer_cut(scene_peer(scene, ADDRESS), i == 1 ? LINK_CLOSED_BY_PEER : LINK_RESET);
    }
}
SCENARIO(alone_and_lost);

static void alone_and_stopped(struct scene *scene)
{
    struct link *link = start(scene, 0, &protocol_raw);

    for (unsigned i = 0; link && i < 3; i++) {
        scene_run(scene, i * 0.01);
        link_stop(link);
        scene_run(scene, 0.01);
        link_start(link);
    }
}
SCENARIO(alone_and_stopped);

static void alone_with_all_parts(struct scene *scene)
{
    struct link_options options;

    scene_link_options(scene, &options);
    options.server_name = "a.example";
    options.local = "127.0.0.1:0";
    scene_link(scene, 0, &options);
}
SCENARIO(alone_with_all_parts);

static void alone_and_refused(struct scene *scene)
{
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_REFUSE);
    start(scene, 0, &protocol_raw);
    scene_run(scene, 3);
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_ACCEPT);
}
SCENARIO(alone_and_refused);

/* ---- handles ---- */

static struct scene *the_scene;

static int keep_and_wait(struct protocol_link *pl)
{
    if (the_scene->n_handles < HANDLES)
        the_scene->handles[the_scene->n_handles++] = protocol_attempt(pl);
    protocol_attempt(pl); /* the same one again */
    return 0;
}

static const struct protocol keeps_handles = {.size = sizeof keeps_handles, .name = "keeps", .start = keep_and_wait};

/* What a timer of the protocol's would do. */
static void ring(struct scene *scene)
{
    for (unsigned i = 0; i < scene->n_handles; i++) {
        struct protocol_link *pl = protocol_attempt_link(scene->handles[i]);
        if (pl)
            protocol_ready(pl);
    }
    scene->n_handles = 0;
    scene_check(scene);
}

static void handles_of_protocols(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, ADDRESS, &keeps_handles);

    the_scene = scene;
    scene->natural = true; /* without a handle nobody says that it is ready */
    for (unsigned i = 0; i < 5; i++) {
        scene_ask_host(scene, i, host);
        scene_run(scene, 0.01);
        if (i % 2)
            ring(scene);
    }
    scene_run(scene, 3.5);
    ring(scene);
}
SCENARIO(handles_of_protocols);

static enum transport_step keep_and_open(struct transport_link *tl, unsigned events)
{
    if (the_scene->n_handles < HANDLES)
        the_scene->handles[the_scene->n_handles++] = transport_attempt(tl);
    return transport_tcp_open(tl, events);
}

static struct transport keeping;

static void keep_by_transport(struct scene *scene)
{
    the_scene = scene;
    keeping = transport_tcp;
    keeping.open = keep_and_open;
    keeping.state_size = 40;
    scene->world.host.transport = &keeping;
}

static void handles_of_transports(struct scene *scene)
{
    for (unsigned i = 0; i < 4; i++)
        scene_ask(scene, i, i % 2 ? ADDRESS : OTHER);
    scene_run(scene, 0.01);
    for (unsigned i = 0; i < scene->n_handles; i++) {
        struct transport_link *tl = transport_attempt_link(scene->handles[i]);
        if (tl && i == 0)
            transport_lost(tl, LINK_RESET, ECONNRESET, "told from outside");
    }
    scene->natural = true;
    scene->n_handles = HANDLES; /* no more of them: those kept go with the pool */
    scene_run(scene, 1);
}
SCENARIO(handles_of_transports, .options = keep_by_transport);

/* ---- words ---- */

static int refuse(void *data, int fd, int domain)
{
    unsigned *n = data;

    (void)fd, (void)domain;
    if (++*n % 2)
        return 0;
    errno = EACCES;
    return -1;
}

static unsigned n_sockets;
static const struct transport_tcp_options refusing = {.size = sizeof refusing, .prepare = refuse, .data = &n_sockets};
static struct transport with_words;

static void refuse_every_other(struct scene *scene)
{
    n_sockets = 0;
    with_words = transport_tcp;
    with_words.config = &refusing;
    scene->world.host.transport = &with_words;
}

static void words_of_a_transport(struct scene *scene)
{
    char text[256];

    scene->natural_errno = EACCES;
    for (unsigned i = 0; i < 4; i++) {
        scene->users[i].lease.flags = POOL_FRESH;
        scene_ask(scene, i, ADDRESS);
        scene_run(scene, 0.3);
        pool_explain(&scene->users[i].lease, text, sizeof text);
    }
}
SCENARIO(words_of_a_transport, .options = refuse_every_other);

static ssize_t answer_wrong(void *data, const void *in, size_t n, void *out, size_t room)
{
    (void)data, (void)in, (void)room;
    *(char *)out = '?';
    return n ? 1 : 0;
}

static void words_of_a_protocol(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, OTHER, &fake_session);

    scene->natural = true;
    testing_peer_serve(scene_peer(scene, OTHER), answer_wrong, NULL);
    for (unsigned i = 0; i < 3; i++) {
        scene->users[i].lease.flags = POOL_WAIT_FOR_READY;
        scene_ask_host(scene, i, host);
        scene_run(scene, 1);
    }
}
SCENARIO(words_of_a_protocol);
