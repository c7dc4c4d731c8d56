/* network.c - who has which descriptor, and which peer has which address.
 *
 * Descriptors begin at 1000 and the lowest free one is taken, as in a kernel: one used after its close is soon
 * another's, or is counted as a misuse. A socket outlives its descriptor until its peer knows that it is closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

struct testing__fake_peer {
    struct testing_peer peer;
    struct testing *world;
    struct link_address address; /* a normal one: its name is the key */
    UT_hash_handle hh;
};

/* ---- descriptors ---- */

struct testing__socket *testing__socket_at(const struct testing *t, int fd)
{
    unsigned slot = (unsigned)(fd - TESTING__FIRST_FD);

    return fd >= TESTING__FIRST_FD && slot < t->fd_words * 64 ? t->by_fd[slot] : NULL;
}

static int grow_table(struct testing *t)
{
    unsigned words = t->fd_words ? 2 * t->fd_words : 4;
    struct testing__socket **by_fd = realloc(t->by_fd, words * 64 * sizeof *by_fd);
    uint64_t *taken;

    if (!by_fd)
        return LINKPOOL_ENOMEM;
    t->by_fd = by_fd;
    taken = realloc(t->fd_taken, words * sizeof *taken);
    if (!taken)
        return LINKPOOL_ENOMEM;
    t->fd_taken = taken;
    memset(by_fd + t->fd_words * 64, 0, (words - t->fd_words) * 64 * sizeof *by_fd);
    memset(taken + t->fd_words, 0, (words - t->fd_words) * sizeof *taken);
    t->fd_words = words;
    return 0;
}

static int take_fd(struct testing *t, struct testing__socket *socket)
{
    unsigned bit = 0, slot;

    while (t->fd_first < t->fd_words && t->fd_taken[t->fd_first] == UINT64_MAX)
        t->fd_first++;
    if (t->fd_first == t->fd_words && grow_table(t) != 0)
        return LINKPOOL_ENOMEM;
    while (t->fd_taken[t->fd_first] >> bit & 1)
        bit++;
    slot = t->fd_first * 64 + bit;
    t->fd_taken[t->fd_first] |= (uint64_t)1 << bit;
    t->by_fd[slot] = socket;
    socket->fd = TESTING__FIRST_FD + (int)slot;
    t->n_open++;
    return 0;
}

void testing__give_fd(struct testing *t, struct testing__socket *socket)
{
    unsigned slot = (unsigned)(socket->fd - TESTING__FIRST_FD);

    t->by_fd[slot] = NULL;
    t->fd_taken[slot / 64] &= ~((uint64_t)1 << slot % 64);
    if (slot / 64 < t->fd_first)
        t->fd_first = slot / 64;
    socket->fd = -1;
    t->n_open--;
}

struct testing__socket *testing__socket_new(struct testing *t, int domain)
{
    struct testing__socket *socket = calloc(1, sizeof *socket);

    if (!socket)
        return NULL;
    *socket = (struct testing__socket){.world = t, .fd = -1, .domain = domain, .max_out = t->send_buffer};
    socket->timer.fire = testing__socket_timer;
    if (testing__hold(&t->heap) != 0)
        goto no_timer;
    if (take_fd(t, socket) != 0)
        goto no_fd;
    DL_APPEND(t->sockets, socket);
    return socket;
no_fd:
    testing__unhold(&t->heap, &socket->timer);
no_timer:
    free(socket);
    return NULL;
}

void testing__socket_let_go(struct testing__socket *socket)
{
    struct testing *t = socket->world;

    if (socket->fd >= 0 || socket->conn || socket->busy)
        return;
    if (socket->ready)
        DL_DELETE2(t->ready, socket, ready_prev, ready_next);
    DL_DELETE(t->sockets, socket);
    testing__unhold(&t->heap, &socket->timer);
    testing__bytes_free(&socket->in);
    testing__bytes_free(&socket->out);
    free(socket);
}

/* ---- addresses ---- */

/** Only what makes an address this one, so that equal places are equal bytes. */
void testing__normal_address(struct link_address *to, const struct sockaddr *from, socklen_t size)
{
    const struct sockaddr_in *in = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;

    memset(to, 0, sizeof *to);
    to->name.any.sa_family = from->sa_family;
    if (from->sa_family == AF_INET) {
        to->size = sizeof to->name.in;
        to->name.in.sin_port = in->sin_port;
        to->name.in.sin_addr = in->sin_addr;
    } else if (from->sa_family == AF_INET6) {
        to->size = sizeof to->name.in6;
        to->name.in6.sin6_port = in6->sin6_port;
        to->name.in6.sin6_addr = in6->sin6_addr;
        to->name.in6.sin6_scope_id = in6->sin6_scope_id;
    } else {
        to->size = size < sizeof to->name.un ? size : sizeof to->name.un;
        memcpy(&to->name.un, from, to->size);
        if (to->size > offsetof(struct sockaddr_un, sun_path) && to->name.un.sun_path[0]) /* with its NUL or without */
            to->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                   strnlen(to->name.un.sun_path, to->size - offsetof(struct sockaddr_un, sun_path)));
    }
}

struct testing_peer *testing__peer_at(struct testing *t, const struct link_address *address)
{
    struct testing__fake_peer *fake;

    HASH_FIND(hh, t->peers, &address->name, address->size, fake);
    return fake ? &fake->peer : NULL;
}

void testing__fake_unplace(struct testing_peer *peer)
{
    struct testing__fake_peer *fake = testing__of(peer, struct testing__fake_peer, peer);

    HASH_DEL(fake->world->peers, fake);
}

void testing__fake_destroy(struct testing_peer *peer)
{
    free(testing__of(peer, struct testing__fake_peer, peer));
}

static struct testing__fake_peer *new_fake(struct testing *t, const struct link_address *at)
{
    struct testing__fake_peer *fake = calloc(1, sizeof *fake);

    if (!fake)
        return NULL;
    fake->world = t;
    fake->address = *at;
    fake->peer.ground = &testing__fake_ground;
    fake->peer.draws = &t->draws;
    return fake;
}

struct testing_peer *testing_peer_add(struct testing *t, const char *address, enum testing_behaviour behaviour)
{
    struct link_address parsed, at;
    struct testing__fake_peer *fake;

    if (link_address_parse(address, strlen(address), &parsed, NULL, 0) != 0) {
        errno = EINVAL;
        return NULL;
    }
    testing__normal_address(&at, &parsed.name.any, parsed.size);
    if (testing__peer_at(t, &at)) {
        errno = EADDRINUSE;
        return NULL;
    }
    fake = new_fake(t, &at);
    if (!fake)
        return NULL;
    link_address_format(&parsed, fake->peer.text);
    if (testing__peer_init(&fake->peer, &t->heap, behaviour) != 0)
        goto no_peer;
    HASH_ADD_KEYPTR(hh, t->peers, &fake->address.name, fake->address.size, fake);
    if (!fake->hh.tbl)
        goto no_place;
    return &fake->peer;
no_place:
    testing__peer_discard(&fake->peer);
no_peer:
    free(fake);
    errno = ENOMEM;
    return NULL;
}

void testing__network_free(struct testing *t)
{
    struct testing__socket *socket, *after;

    while (t->peers)
        testing_peer_free(&t->peers->peer);
    DL_FOREACH_SAFE (t->sockets, socket, after) {
        testing__orphan(socket);
        socket->fd = -1;
        testing__socket_let_go(socket);
    }
    free(t->by_fd);
    free(t->fd_taken);
}
