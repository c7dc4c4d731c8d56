/* hop.c - see hop.h. IPv4 alone. */
#include "hop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct hop {
    int fd;
    unsigned sockets; /* opened so far */
};

static bool parse(const char *text, struct sockaddr_in *address)
{
    const char *colon = strchr(text, ':');
    char host[INET_ADDRSTRLEN];

    if (!colon || (size_t)(colon - text) >= sizeof host)
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

/* Begins to connect; the library is told of the descriptor before anything waits on it. */
static enum transport_step dial(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);
    struct hop *hop = tl->state;
    struct sockaddr_in address;

    if (!parse(transport_address(tl), &address))
        return transport_fail(tl, LINK_UNREACHABLE, 0, "not an IPv4 address"), TRANSPORT_FAILED;
    hop->fd = env->socket(env->data, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (hop->fd < 0)
        return transport_fail(tl, LINK_NO_DESCRIPTORS, errno, NULL), TRANSPORT_FAILED;
    hop->sockets++;
    transport_moved(tl, hop->fd);
    if (env->connect(env->data, hop->fd, (const struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)
        return transport_fail(tl, LINK_REFUSED, errno, NULL), TRANSPORT_FAILED;
    transport_want(tl, LINKPOOL_WRITE);
    return TRANSPORT_AGAIN;
}

static enum transport_step go_on(struct transport_link *tl, bool close_first)
{
    const struct linkpool_env *env = transport_env(tl);
    struct hop *hop = tl->state;
    enum transport_step step;
    int error = 0, first = hop->fd;
    socklen_t size = sizeof error;

    if (env->getsockopt(env->data, first, SOL_SOCKET, SO_ERROR, &error, &size))
        error = errno;
    if (error)
        return transport_fail(tl, LINK_REFUSED, error, NULL), TRANSPORT_FAILED;
    if (hop->sockets == 2)
        return TRANSPORT_UP;
    if (close_first)
        env->close(env->data, first);
    step = dial(tl);
    if (!close_first)
        env->close(env->data, first);
    return step;
}

static enum transport_step open_another(struct transport_link *tl, unsigned events)
{
    return events ? go_on(tl, false) : dial(tl);
}

static enum transport_step open_the_same(struct transport_link *tl, unsigned events)
{
    return events ? go_on(tl, true) : dial(tl);
}

const struct transport hop_to_another = {
    .size = sizeof(struct transport),
    .name = "hop to another",
    .flags = TRANSPORT_PLAIN_FD,
    .state_size = sizeof(struct hop),
    .open = open_another,
    .readv = transport_tcp_readv,
    .writev = transport_tcp_writev,
    .idle = transport_tcp_idle,
    .shutdown = transport_tcp_shutdown,
    .close = transport_tcp_close,
};

const struct transport hop_to_the_same = {
    .size = sizeof(struct transport),
    .name = "hop to the same",
    .flags = TRANSPORT_PLAIN_FD,
    .state_size = sizeof(struct hop),
    .open = open_the_same,
    .readv = transport_tcp_readv,
    .writev = transport_tcp_writev,
    .idle = transport_tcp_idle,
    .shutdown = transport_tcp_shutdown,
    .close = transport_tcp_close,
};
