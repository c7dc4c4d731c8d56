/* sweep.c - playing a scenario with one thing after the other failing; see scene.h. */
#include "tests/faults/sweep.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/faults/env.h"

/* ---- what is plausible, and what it is to mean ---- */

/* clang-format off */
const struct sweep_pair sweep_pairs[] = {
    {CALL_SOCKET, EMFILE, LINK_NO_DESCRIPTORS},    {CALL_SOCKET, ENFILE, LINK_NO_DESCRIPTORS},
    {CALL_SOCKET, ENOMEM, LINK_NO_MEMORY},         {CALL_SOCKET, ENOBUFS, LINK_NO_MEMORY},
    {CALL_SOCKET, EACCES, LINK_UNREACHABLE},       {CALL_SOCKET, EPERM, LINK_UNREACHABLE},
    {CALL_SOCKET, EAFNOSUPPORT, LINK_UNREACHABLE}, {CALL_SOCKET, EPROTONOSUPPORT, LINK_UNREACHABLE},

    {CALL_CONNECT, ECONNREFUSED, LINK_REFUSED},    {CALL_CONNECT, ENETUNREACH, LINK_UNREACHABLE},
    {CALL_CONNECT, EHOSTUNREACH, LINK_UNREACHABLE},{CALL_CONNECT, ENETDOWN, LINK_UNREACHABLE},
    {CALL_CONNECT, ETIMEDOUT, LINK_TIMED_OUT},     {CALL_CONNECT, EADDRNOTAVAIL, LINK_UNREACHABLE},
    {CALL_CONNECT, EACCES, LINK_UNREACHABLE},      {CALL_CONNECT, EPERM, LINK_UNREACHABLE},
    {CALL_CONNECT, ENOENT, LINK_UNREACHABLE},      {CALL_CONNECT, EAGAIN, LINK_UNREACHABLE},
    {CALL_CONNECT, ECONNRESET, LINK_RESET},        {CALL_CONNECT, ECONNABORTED, LINK_RESET},
    {CALL_CONNECT, ENOBUFS, LINK_NO_MEMORY},       {CALL_CONNECT, ENOMEM, LINK_NO_MEMORY},
    {CALL_CONNECT, EINTR, LINK_NO_REASON},

    {CALL_BIND, EADDRINUSE, LINK_UNREACHABLE},     {CALL_BIND, EADDRNOTAVAIL, LINK_UNREACHABLE},
    {CALL_BIND, EACCES, LINK_UNREACHABLE},         {CALL_BIND, ENOMEM, LINK_NO_MEMORY},
    {CALL_BIND, EINVAL, LINK_UNREACHABLE},

    {CALL_SETSOCKOPT, ENOPROTOOPT, LINK_UNREACHABLE}, {CALL_SETSOCKOPT, EINVAL, LINK_UNREACHABLE},
    {CALL_SETSOCKOPT, EPERM, LINK_UNREACHABLE},    {CALL_SETSOCKOPT, ENOBUFS, LINK_NO_MEMORY},
    {CALL_SETSOCKOPT, ENOMEM, LINK_NO_MEMORY},

    {CALL_GETSOCKOPT, ENOBUFS, LINK_NO_MEMORY},    {CALL_GETSOCKOPT, EACCES, LINK_UNREACHABLE},
    {CALL_GETSOCKOPT, EBADF, LINK_UNREACHABLE},
    {CALL_GETSOCKOPT, IN_VALUE | ECONNREFUSED, LINK_REFUSED},
    {CALL_GETSOCKOPT, IN_VALUE | ETIMEDOUT, LINK_TIMED_OUT},
    {CALL_GETSOCKOPT, IN_VALUE | EHOSTUNREACH, LINK_UNREACHABLE},
    {CALL_GETSOCKOPT, IN_VALUE | ENETUNREACH, LINK_UNREACHABLE},
    {CALL_GETSOCKOPT, IN_VALUE | ECONNRESET, LINK_RESET},

    {CALL_RECVMSG, EAGAIN, LINK_NO_REASON},        {CALL_RECVMSG, EINTR, LINK_NO_REASON},
    {CALL_RECVMSG, SHORT, LINK_NO_REASON},         {CALL_RECVMSG, ECONNRESET, LINK_RESET},
    {CALL_RECVMSG, ETIMEDOUT, LINK_TIMED_OUT},     {CALL_RECVMSG, EHOSTUNREACH, LINK_UNREACHABLE},
    {CALL_RECVMSG, ECONNREFUSED, LINK_REFUSED},    {CALL_RECVMSG, ENOMEM, LINK_NO_MEMORY},
    {CALL_RECVMSG, ENOBUFS, LINK_NO_MEMORY},

    {CALL_SENDMSG, EAGAIN, LINK_NO_REASON},        {CALL_SENDMSG, EINTR, LINK_NO_REASON},
    {CALL_SENDMSG, SHORT, LINK_NO_REASON},         {CALL_SENDMSG, EPIPE, LINK_RESET},
    {CALL_SENDMSG, ECONNRESET, LINK_RESET},        {CALL_SENDMSG, ETIMEDOUT, LINK_TIMED_OUT},
    {CALL_SENDMSG, EHOSTUNREACH, LINK_UNREACHABLE},{CALL_SENDMSG, ENOBUFS, LINK_NO_MEMORY},
    {CALL_SENDMSG, ENOMEM, LINK_NO_MEMORY},

    {CALL_SHUTDOWN, ENOTCONN, LINK_UNREACHABLE},   {CALL_SHUTDOWN, ENOBUFS, LINK_NO_MEMORY},

    {CALL_CLOSE, EINTR, LINK_NO_REASON},           {CALL_CLOSE, EIO, LINK_NO_REASON},
    {CALL_CLOSE, ENOSPC, LINK_NO_REASON},
};
/* clang-format on */
const unsigned sweep_n_pairs = sizeof sweep_pairs / sizeof *sweep_pairs;

static enum link_reason reason_of(const struct scene_fault *fault)
{
    if (fault->call == CALL_NONE)
        return LINK_NO_MEMORY;
    for (unsigned i = 0; i < sweep_n_pairs; i++)
        if ((int)sweep_pairs[i].call == fault->call && sweep_pairs[i].error == fault->error)
            return sweep_pairs[i].reason;
    return LINK_NO_REASON;
}

static bool may_say(const struct scene *scene, int status)
{
    switch (status) {
    case LINKPOOL_ENOMEM:
        return scene->fault.call == CALL_NONE;
    case LINKPOOL_EUNAVAILABLE:
    case LINKPOOL_ELOST:
    case LINKPOOL_ETIMEDOUT:
        return true;
    case LINKPOOL_ECLOSED:
    case LINKPOOL_EFULL:
        return scene->ends_leases || scene->pool_ends;
    default:
        return false;
    }
}

static bool is_natural(enum link_reason reason)
{
    return reason == LINK_REFUSED || reason == LINK_TIMED_OUT || reason == LINK_CLOSED_BY_PEER ||
           reason == LINK_RESET || reason == LINK_HANDSHAKE_FAILED || reason == LINK_PROTOCOL_ERROR ||
           reason == LINK_MADE_ROOM || reason == LINK_SENT_AWAY;
}

void sweep_is_right(const struct scene *scene, const struct pool_lease *lease)
{
    enum link_reason planted = reason_of(&scene->fault);

    if (lease->status < 0 && !may_say(scene, lease->status))
        cr_fatal("status %s", linkpool_strerror(lease->status));
    if (lease->reason == LINK_NO_REASON) {
        cr_assert(ne(int, lease->status, LINKPOOL_EUNAVAILABLE));
        cr_assert(ne(int, lease->status, LINKPOOL_ELOST));
        return;
    }
    if ((scene->natural && is_natural(lease->reason)) || lease->status == LINKPOOL_ECLOSED)
        return;
    if (scene->natural_errno && lease->system_errno == scene->natural_errno)
        return;
    if (lease->reason != planted || (lease->system_errno && lease->system_errno != (scene->fault.error & ~IN_VALUE)))
        cr_fatal("told \"%s\", errno %d, where \"%s\" was planted", link_reason_text(lease->reason),
            lease->system_errno, link_reason_text(planted));
}

/* ---- one play ---- */

enum {
    N_ECHO = 5
}; /* peers that echo, the first of them all */

static void begin(struct scene *scene, const struct scenario *scenario)
{
    static const char *const echo[] = {ADDRESS, OTHER, THIRD, SOCKET, SIXTH};

    memset(scene, 0, sizeof *scene);
    fake_world_begin(&scene->world);
    scene->fault.call = CALL_NONE;
    scene->serves = ADDRESS;
    env_begin(scene);
    for (unsigned i = 0; i < N_ECHO; i++)
        scene->peers[i] = fake_echo(&scene->world, echo[i]);
    scene->peers[N_ECHO] = fake_peer(&scene->world, REFUSES, TESTING_REFUSE);
    scene->peers[N_ECHO + 1] = fake_peer(&scene->world, SILENT, TESTING_BLACK_HOLE);
    scene->peers[N_ECHO + 2] = fake_peer(&scene->world, CLOSES, TESTING_ACCEPT_AND_CLOSE);
    scene->peers[N_ECHO + 3] = fake_peer(&scene->world, RESETS, TESTING_ACCEPT_AND_RESET);
    scene->world.options.env = &scene->env;
    if (scenario->options)
        scenario->options(scene);
}

static void open_pool(struct scene *scene)
{
    struct driver *driver = testing_driver(scene->world.t);

    cr_assert(ne(ptr, driver, NULL));
    scene->world.pool = pool_new_on(driver, &scene->world.options);
    if (scene->world.pool)
        return;
    cr_assert(eq(int, errno, ENOMEM));
    driver_free(driver);
}

/* ---- a normal use, when the faults are over ---- */

static void use_links(struct scene *scene)
{
    struct link_options options;

    scene_link_options(scene, &options);
    for (unsigned i = 0; i < SCENE_LINKS; i++) {
        if (!scene->links[i])
            continue;
        link_start(scene->links[i]); /* those that have stopped; of others it changes nothing */
        fake_run(&scene->world, 15);
        cr_assert(eq(int, link_state(scene->links[i]), LINK_READY));
        cr_assert(eq(uint, scene->n_connected[i], scene->n_disconnected[i] + 1));
    }
}

static void exchange(struct scene *scene, struct fake_user *user)
{
    char byte = 'n';

    if (link__is_shared(user->lease.channel->link)) {
        cr_assert(eq(int, channel_send(user->lease.channel, &byte, 1), 0));
        return;
    }
    cr_assert(eq(long, channel_writev(user->lease.channel, &(struct iovec){&byte, 1}, 1), 1));
    fake_run(&scene->world, 0.001);
    cr_assert(eq(long, channel_read(user->lease.channel, &byte, 1), 1));
    cr_assert(eq(int, byte, 'n'));
}

static void use(struct scene *scene)
{
    struct fake_user late = {.lease.flags = POOL_WAIT_FOR_READY, .lease.timeout = 15};

    for (unsigned i = 0; i < 2; i++) { /* by a new link, perhaps, then by a used one */
        cr_assert(ge(int, fake_ask(&scene->world, &late, scene->serves), 0));
        fake_run(&scene->world, late.lease.channel ? 0.001 : 15.5);
        cr_assert(ne(ptr, late.lease.channel, NULL));
        exchange(scene, &late);
        fake_give_back(&late);
        scene_check(scene);
    }
}

static void end(struct scene *scene)
{
    for (unsigned i = 0; i < SCENE_LINKS; i++)
        link_free(scene->links[i]);
    driver_free(scene->driver);
    fake_world_end(&scene->world);
}

/* A pool that is gone, or was not to be had, is made anew. */
static void use_all(struct scene *scene)
{
    for (unsigned i = 0; i < N_ECHO; i++)
        testing_peer_behave(scene->peers[i], TESTING_ACCEPT);
    if (scene->pool_ends) {
        pool_free(scene->world.pool);
        scene->world.pool = NULL;
        scene->serves = ADDRESS;
    }
    if (!scene->world.pool)
        open_pool(scene);
    use(scene);
    use_links(scene);
}

static bool is_told(const struct scene *scene)
{
    enum link_reason planted = reason_of(&scene->fault);

    if (!scene->world.pool || planted == LINK_NO_REASON || (scene->natural && is_natural(planted)))
        return false;
    return fake_stats(&scene->world).ends[planted];
}

/* "Again", "interrupted", "not all of it": whoever is told so goes on, and nothing of what was sent is lost. */
static void went_on(const struct scene *scene)
{
    if (scene->fault.call == CALL_NONE || reason_of(&scene->fault) != LINK_NO_REASON || scene->natural ||
        scene->ends_leases || scene->pool_ends)
        return;
    for (unsigned i = 0; i < USERS; i++) {
        const struct pool_lease *lease = &scene->users[i].lease;
        cr_assert(ge(int, lease->status, 0));
        if (lease->channel && link__is_shared(lease->channel->link))
            cr_assert(eq(u64, lease->bytes_received, lease->bytes_sent));
    }
    for (unsigned i = 0; i < SCENE_LINKS; i++)
        cr_assert(eq(uint, scene->n_disconnected[i], 0));
}

/* Plays it once. Whether the fault was met; and told, if asked for. */
static bool play(const struct scenario *scenario, struct scene_fault fault, bool *told)
{
    struct scene *scene = malloc(sizeof *scene); /* valgrind and asan see what is read of it too late */
    bool met;

    cr_assert(ne(ptr, scene, NULL));
    begin(scene, scenario);
    if (scenario->before) {
        open_pool(scene);
        scenario->before(scene);
    }
    scene->fault = fault;
    if (!scenario->before)
        open_pool(scene);
    scenario->play(scene);
    scene_run(scene, 10);
    scene_exchange(scene);
    went_on(scene);
    scene_give_all_back(scene);
    scene_run(scene, 70); /* what fell idle goes */
    met = scene->fault.met;
    if (told)
        *told = *told || is_told(scene);
    scene->fault = (struct scene_fault){.call = CALL_NONE};
    use_all(scene);
    end(scene);
    free(scene);
    return met;
}

/* ---- the sweeps ---- */

void sweep_memory(const struct scenario *scenario)
{
    struct scene_fault fault = {.call = CALL_NONE};

    for (int from_then = 0; from_then < 2; from_then++) {
        fault.from_then = from_then;
        for (fault.at = 1; play(scenario, fault, NULL); fault.at++)
            cr_assert(lt(uint, fault.at, 2000));
        cr_assert(lt(uint, 1, fault.at)); /* it did allocate */
    }
}

static void sweep_pair(const struct scenario *scenario, unsigned i, unsigned n, struct sweep_seen *seen)
{
    struct scene_fault fault = {.call = (int)sweep_pairs[i].call, .error = sweep_pairs[i].error};

    for (fault.at = 1; fault.at <= n && play(scenario, fault, &seen[i].told); fault.at++)
        seen[i].met = true;
}

void sweep_calls(const struct scenario *scenario, struct sweep_seen *seen)
{
    for (unsigned i = 0; i < sweep_n_pairs; i++)
        sweep_pair(scenario, i, 2000, seen);
}

void sweep_first_calls(const struct scenario *scenario, struct sweep_seen *seen)
{
    for (unsigned i = 0; i < sweep_n_pairs; i++)
        if (!seen[i].met || (!seen[i].told && sweep_pairs[i].reason != LINK_NO_REASON))
            sweep_pair(scenario, i, 1, seen);
}
