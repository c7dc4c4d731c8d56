/* transport_tcp.c - sockets: TCP over IPv4 and IPv6, and unix.
 *
 * Never blocks, never raises a signal, never crosses exec. A unix connect that meets a full backlog (EAGAIN) has
 * nothing to wait on: it is tried again by timer within the attempt's deadline. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "link/internal.h"

static const double full_backlog_retry = 0.01; /* seconds: brisk beside a backlog's turnover, idle beside a deadline */

enum link_reason link__reason_of_errno(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return LINK_REFUSED;
    case ENOENT:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EACCES:
    case EPERM:
        return LINK_UNREACHABLE;
    case ETIMEDOUT:
        return LINK_TIMED_OUT;
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
        return LINK_RESET;
    case EMFILE:
    case ENFILE:
        return LINK_NO_DESCRIPTORS;
    case ENOMEM:
    case ENOBUFS:
        return LINK_NO_MEMORY;
    default:
        return LINK_UNREACHABLE;
    }
}

static enum transport_step failed(struct transport_link *tl, int error, const char *what)
{
    transport_fail(tl, link__reason_of_errno(error), error, what);
    return TRANSPORT_FAILED;
}

static int set(struct transport_link *tl, int level, int name, int value)
{
    const struct linkpool_env *env = transport_env(tl);

    return env->setsockopt(env->data, tl->fd, level, name, &value, sizeof value);
}

static int set_keepalive(struct transport_link *tl, const struct transport_tcp_options *options)
{
    if (set(tl, SOL_SOCKET, SO_KEEPALIVE, 1))
        return -1;
    if (options->keepalive_idle && set(tl, IPPROTO_TCP, TCP_KEEPIDLE, (int)options->keepalive_idle))
        return -1;
    if (options->keepalive_interval && set(tl, IPPROTO_TCP, TCP_KEEPINTVL, (int)options->keepalive_interval))
        return -1;
    if (options->keepalive_probes && set(tl, IPPROTO_TCP, TCP_KEEPCNT, (int)options->keepalive_probes))
        return -1;
    return 0;
}

static int set_options(struct transport_link *tl, const struct transport_tcp_options *options, int domain)
{
    bool tcp = domain != AF_UNIX;

    if (tcp && !(options && options->nagle) && set(tl, IPPROTO_TCP, TCP_NODELAY, 1))
        return -1;
    if (!options)
        return 0;
    if (tcp && options->keepalive && set_keepalive(tl, options))
        return -1;
    if (tcp && options->user_timeout > 0 && set(tl, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(options->user_timeout * 1000)))
        return -1;
    return options->prepare ? options->prepare(options->data, tl->fd, domain) : 0;
}

int link__parse_local(const char *text, struct link_address *address, char *why, size_t n)
{
    size_t length = strlen(text);
    char any_port[LINK_ADDRESS_TEXT];
    bool any = strncmp(text, "unix:", 5) != 0 && length > 2 && length < sizeof any_port - 1 &&
               !strcmp(text + length - 2, ":0");
    int error;

    /* Port 0, which is no place to connect to, means "any" here. */
    if (any) {
        memcpy(any_port, text, length + 1);
        any_port[length - 1] = '1';
    }
    if ((error = link_address_parse(any ? any_port : text, length, address, why, n)))
        return error;
    if (any && address->name.any.sa_family == AF_INET)
        address->name.in.sin_port = 0;
    else if (any)
        address->name.in6.sin6_port = 0;
    return 0;
}

static int bind_local(struct transport_link *tl, const struct transport_tcp_options *options)
{
    const struct linkpool_env *env = transport_env(tl);
    const char *local = transport_local(tl);
    struct link_address address;

    if (!*local && options && options->local)
        local = options->local;
    if (!*local)
        return 0;
    if (link__parse_local(local, &address, NULL, 0)) {
        errno = EINVAL;
        return -1;
    }
    return env->bind(env->data, tl->fd, &address.name.any, address.size);
}

/* It was an address when the link was made; a scope's interface may have gone since. */
static int parse(struct transport_link *tl, struct link_address *address)
{
    const char *text = transport_address(tl);
    char why[128];

    if (!link_address_parse(text, strlen(text), address, why, sizeof why))
        return 0;
    return transport_fail(tl, LINK_UNREACHABLE, 0, why);
}

static enum transport_step connect_it(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);
    struct link_address address;

    if (parse(tl, &address))
        return TRANSPORT_FAILED;
    if (!env->connect(env->data, tl->fd, &address.name.any, address.size))
        return TRANSPORT_UP;
    if (errno == EINPROGRESS || errno == EINTR) {
        transport_want(tl, LINKPOOL_WRITE);
        return TRANSPORT_AGAIN;
    }
    if (errno == EAGAIN && address.name.any.sa_family == AF_UNIX) {
        transport_retry(tl, full_backlog_retry);
        return TRANSPORT_AGAIN;
    }
    return failed(tl, errno, NULL);
}

/* A transport that is built on this one has a config of its own. */
static const struct transport_tcp_options *options_of(const struct transport_link *tl)
{
    return tl->transport->open == transport_tcp_open ? tl->transport->config : NULL;
}

static enum transport_step begin(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);
    const struct transport_tcp_options *options = options_of(tl);
    struct link_address address;
    int domain;

    if (parse(tl, &address))
        return TRANSPORT_FAILED;
    domain = address.name.any.sa_family;
    tl->fd = env->socket(env->data, domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (tl->fd < 0)
        return failed(tl, errno, NULL);
    if (set_options(tl, options, domain))
        return failed(tl, errno, "socket option refused");
    if (bind_local(tl, options))
        return failed(tl, errno, "local address refused");
    return connect_it(tl);
}

static enum transport_step finish(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);
    int error = 0;
    socklen_t size = sizeof error;

    if (env->getsockopt(env->data, tl->fd, SOL_SOCKET, SO_ERROR, &error, &size))
        error = errno;
    return error ? failed(tl, error, NULL) : TRANSPORT_UP;
}

enum transport_step transport_tcp_open(struct transport_link *tl, unsigned events)
{
    if (events)
        return finish(tl);
    return tl->fd < 0 ? begin(tl) : connect_it(tl);
}

ssize_t transport_tcp_readv(struct transport_link *tl, const struct iovec *parts, int n)
{
    const struct linkpool_env *env = transport_env(tl);
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};

    return env->recvmsg(env->data, tl->fd, &message, 0);
}

ssize_t transport_tcp_writev(struct transport_link *tl, const struct iovec *parts, int n)
{
    const struct linkpool_env *env = transport_env(tl);
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};

    return env->sendmsg(env->data, tl->fd, &message, MSG_NOSIGNAL);
}

enum transport_idle transport_tcp_idle(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t got = env->recvmsg(env->data, tl->fd, &message, MSG_PEEK | MSG_DONTWAIT);

    if (got > 0)
        return TRANSPORT_BYTES;
    if (got == 0)
        return TRANSPORT_EOF;
    if (errno == EAGAIN || errno == EINTR)
        return TRANSPORT_CLEAN;
    transport_fail(tl, link__reason_of_errno(errno), errno, NULL);
    return TRANSPORT_BROKEN;
}

int transport_tcp_shutdown(struct transport_link *tl)
{
    const struct linkpool_env *env = transport_env(tl);

    return env->shutdown(env->data, tl->fd, SHUT_WR);
}

void transport_tcp_close(struct transport_link *tl, bool quiet)
{
    const struct linkpool_env *env = transport_env(tl);

    (void)quiet; /* a close alone sends nothing while the parent has the socket open too */
    if (tl->fd >= 0)
        env->close(env->data, tl->fd);
}

const struct transport transport_tcp = {
    .size = sizeof(struct transport),
    .name = "tcp",
    .flags = TRANSPORT_PLAIN_FD,
    .open = transport_tcp_open,
    .readv = transport_tcp_readv,
    .writev = transport_tcp_writev,
    .idle = transport_tcp_idle,
    .shutdown = transport_tcp_shutdown,
    .close = transport_tcp_close,
};
