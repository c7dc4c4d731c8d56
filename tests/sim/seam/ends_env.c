/* ends_env.c - the env that leads to the far ends: the system's own calls, but for what a pair cannot do. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "tests/sim/seam/clock.h"
#include "tests/sim/seam/ends_internal.h"

enum {
    BUFFER = 65536 /* bytes that a pair takes from the library */
};

static const struct linkpool_env *const real = &linkpool_env_system;

static int refuse(int error)
{
    errno = error;
    return -1;
}

static struct end *end_at(const struct ends *ends, int near)
{
    struct end *end;

    DL_FOREACH (ends->all, end)
        if (end->near == near)
            return end;
    return NULL;
}

static struct peer *peer_at(struct ends *ends, const struct sockaddr *address, socklen_t size)
{
    for (int i = 0; i < STAGE_PEERS; i++) {
        struct peer *peer = &ends->peers[i];
        if (peer->address.size == size && !memcmp(&peer->address.name, address, size))
            return peer;
    }
    return NULL;
}

static int call_socket(void *data, int domain, int type, int protocol)
{
    struct ends *ends = data;
    struct end *end = calloc(1, sizeof *end);
    int pair[2] = {-1, -1}, size = BUFFER;

    assert(end);
    if (domain == AF_UNIX)
        pair[0] = real->socket(NULL, domain, type, protocol);
    else if (!socketpair(AF_UNIX, type, 0, pair)) /* as asked for: a pair that blocks would hang in what follows */
        setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (pair[0] < 0) {
        free(end);
        return -1;
    }
    *end = (struct end){.ends = ends, .near = pair[0], .fd = pair[1], .is_unix = domain == AF_UNIX};
    DL_APPEND(ends->all, end);
    return pair[0];
}

/* Its sending side is full until somebody reads at the far end. */
static void fill(const struct end *end)
{
    static const char filling[4096];

    while (send(end->near, filling, sizeof filling, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
}

static int connect_pair(struct end *end)
{
    if (end->peer && end->peer->behaviour == TESTING_UNREACHABLE)
        return refuse(ENETUNREACH);
    fill(end);
    end->state = END_COMING;
    return refuse(EINPROGRESS);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    struct end *end = end_at(data, fd);
    int result;

    assert(end && end->state == END_NEW);
    end->peer = peer_at(data, address, size);
    end->started = clock_time();
    end->due = end->started + (end->peer ? end->peer->connect_delay : 0);
    if (!end->is_unix)
        return connect_pair(end);
    result = real->connect(NULL, fd, address, size);
    if (!result) {
        assert(end->peer);
        end->state = END_COMING;
    }
    return result;
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return end_at(data, fd)->is_unix ? real->bind(NULL, fd, address, size) : 0;
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    if (level == IPPROTO_TCP && !end_at(data, fd)->is_unix)
        return 0;
    return real->setsockopt(NULL, fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    const struct end *end = end_at(data, fd);
    int result = real->getsockopt(NULL, fd, level, name, value, size);

    if (!result && level == SOL_SOCKET && name == SO_ERROR && end->error && *(int *)value == ECONNRESET)
        *(int *)value = end->error;
    return result;
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    (void)data;
    return real->recvmsg(NULL, fd, message, flags);
}

/* Over TCP a reset is told to who writes, too, before the broken pipe. */
static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = real->sendmsg(NULL, fd, message, flags);
    int error = 0;
    socklen_t size = sizeof error;

    if (sent < 0 && errno == EPIPE && !end_at(data, fd)->is_unix &&
        !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && error)
        return refuse(error);
    return sent;
}

static int call_shutdown(void *data, int fd, int how)
{
    (void)data;
    return real->shutdown(NULL, fd, how);
}

static int call_close(void *data, int fd)
{
    struct end *end = end_at(data, fd);

    assert(end); /* else it was closed before, or never ours */
    end->near = -1;
    if (end->state == END_NEW || (end->state == END_COMING && !end->is_unix))
        ends__shut(end); /* nobody there has heard of it */
    return real->close(NULL, fd);
}

const struct linkpool_env *ends_env(const struct ends *ends)
{
    return &ends->env;
}

void ends__env(struct ends *ends)
{
    ends->env = linkpool_env_system;
    ends->env.data = ends;
    ends->env.socket = call_socket;
    ends->env.connect = call_connect;
    ends->env.bind = call_bind;
    ends->env.setsockopt = call_setsockopt;
    ends->env.getsockopt = call_getsockopt;
    ends->env.recvmsg = call_recvmsg;
    ends->env.sendmsg = call_sendmsg;
    ends->env.shutdown = call_shutdown;
    ends->env.close = call_close;
}
