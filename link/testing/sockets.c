/* sockets.c - the socket calls of the fake network. Each fails as Linux makes it fail.
 *
 * A call changes its socket and no more: what follows from it on the way to the peer is wire.c's, in the next turn. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "link/testing/testing_internal.h"

static int fail(int error)
{
    errno = error;
    return -1;
}

static struct testing__socket *open_socket(struct testing *t, int fd)
{
    struct testing__socket *socket = testing__socket_at(t, fd);

    if (!socket)
        testing__misuse(t, "a call on a descriptor that is not open");
    return socket;
}

/** Counts a call. Returns the socket, or NULL with errno when the descriptor is none or the call must fail. */
static struct testing__socket *begin(struct testing *t, enum testing_call call, int fd)
{
    int error = testing__called(t, call);
    struct testing__socket *socket = open_socket(t, fd);

    if (!socket)
        errno = EBADF;
    else if (error)
        errno = error;
    return error ? NULL : socket;
}

static int call_socket(void *data, int domain, int type, int protocol)
{
    struct testing *t = data;
    struct testing__socket *socket;
    int error = testing__called(t, TESTING_SOCKET);

    (void)protocol;
    if (error)
        return fail(error);
    if ((type & SOCK_NONBLOCK) == 0 || (type & SOCK_CLOEXEC) == 0)
        testing__misuse(t, "a socket that blocks, or that children inherit");
    if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX)
        return fail(EAFNOSUPPORT);
    if (t->n_open >= t->max_open)
        return fail(EMFILE);
    socket = testing__socket_new(t, domain);
    return socket ? socket->fd : fail(ENOMEM);
}

static int connect_to(struct testing__socket *socket, const struct sockaddr *address, socklen_t size)
{
    struct link_address to;
    int error;

    if (address->sa_family != socket->domain)
        return fail(EAFNOSUPPORT);
    testing__normal_address(&to, address, size);
    error = testing__socket_connect(socket, &to);
    return error ? fail(error) : 0;
}

/* One that a signal cuts short goes on by itself, as POSIX has it: only what it would have said is lost. */
static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    struct testing *t = data;
    int error = testing__called(t, TESTING_CONNECT), answer;
    struct testing__socket *socket = open_socket(t, fd);

    if (!socket)
        return fail(EBADF);
    if (error && error != EINTR)
        return fail(error);
    answer = connect_to(socket, address, size);
    return error && (!answer || errno == EINPROGRESS) ? fail(error) : answer; /* other errors come before any wait */
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    struct testing__socket *socket = begin(data, TESTING_BIND, fd);

    if (!socket)
        return -1;
    if (address->sa_family != socket->domain || socket->bound || socket->state != SOCKET_NEW)
        return fail(EINVAL);
    testing__normal_address(&socket->local, address, size);
    socket->bound = true;
    return 0;
}

static struct testing__option *option_at(struct testing__socket *socket, int level, int name)
{
    for (unsigned i = 0; i < socket->n_options; i++)
        if (socket->options[i].level == level && socket->options[i].name == name)
            return &socket->options[i];
    return NULL;
}

bool testing__socket_option(const struct testing__socket *socket, int level, int name, int *value)
{
    for (unsigned i = 0; i < socket->n_options; i++) {
        if (socket->options[i].level != level || socket->options[i].name != name)
            continue;
        *value = socket->options[i].value;
        return true;
    }
    return false;
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    struct testing__socket *socket = begin(data, TESTING_SETSOCKOPT, fd);
    struct testing__option *option;
    const struct linger *linger = value;

    if (!socket)
        return -1;
    if (size < sizeof(int))
        return fail(EINVAL);
    if (level == IPPROTO_TCP && socket->domain == AF_UNIX)
        return fail(EOPNOTSUPP);
    if (level == SOL_SOCKET && name == SO_LINGER && size >= sizeof *linger)
        socket->lingers_not = linger->l_onoff && linger->l_linger == 0;
    option = option_at(socket, level, name);
    if (!option && socket->n_options < TESTING__OPTIONS)
        option = &socket->options[socket->n_options++];
    if (option) {
        *option = (struct testing__option){.level = level, .name = name};
        memcpy(&option->value, value, sizeof option->value);
    }
    return 0;
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    struct testing__socket *socket = begin(data, TESTING_GETSOCKOPT, fd);
    int answer;

    if (!socket)
        return -1;
    if (*size < sizeof answer)
        return fail(EINVAL);
    if (level == SOL_SOCKET && name == SO_ERROR) {
        answer = socket->error;
        socket->error = 0;
    } else if (level == SOL_SOCKET && name == SO_TYPE) {
        answer = SOCK_STREAM;
    } else if (!testing__socket_option(socket, level, name, &answer)) {
        return fail(ENOPROTOOPT);
    }
    memcpy(value, &answer, sizeof answer);
    *size = sizeof answer;
    return 0;
}

static int take_error(struct testing__socket *socket)
{
    int error = socket->error;

    socket->error = 0;
    return fail(error);
}

static size_t copy_out(const struct testing__bytes *bytes, const struct msghdr *message)
{
    size_t n = 0;

    for (size_t i = 0; i < message->msg_iovlen && n < bytes->n; i++) {
        size_t part = message->msg_iov[i].iov_len;
        if (part > bytes->n - n)
            part = bytes->n - n;
        if (part)
            memcpy(message->msg_iov[i].iov_base, testing__bytes_at(bytes) + n, part);
        n += part;
    }
    return n;
}

static size_t room_in(const struct msghdr *message)
{
    size_t n = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++)
        n += message->msg_iov[i].iov_len;
    return n;
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    struct testing__socket *socket = begin(data, TESTING_RECVMSG, fd);
    size_t n;

    if (!socket)
        return -1;
    message->msg_flags = 0;
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    if (socket->in.n || room_in(message) == 0) {
        n = copy_out(&socket->in, message);
        if ((flags & MSG_PEEK) == 0)
            testing__bytes_drop(&socket->in, n);
        return (ssize_t)n;
    }
    if (socket->error)
        return take_error(socket);
    if (socket->state == SOCKET_NEW)
        return fail(ENOTCONN);
    if (socket->in_ended || socket->shut_read || socket->state == SOCKET_DEAD)
        return 0;
    return fail(EAGAIN);
}

/** What is in the way of sending: errno, or 0. */
static int obstacle(struct testing__socket *socket)
{
    int error = socket->error;

    if (socket->domain == AF_UNIX && socket->state == SOCKET_DEAD) /* the error is told to who reads */
        return EPIPE;
    socket->error = 0;
    if (error)
        return error;
    if (socket->state == SOCKET_CONNECTING)
        return EAGAIN;
    if (socket->state != SOCKET_UP || socket->shut_write)
        return socket->state == SOCKET_NEW && socket->domain == AF_UNIX ? ENOTCONN : EPIPE;
    if (socket->far == FAR_CLOSED && socket->domain == AF_UNIX)
        return EPIPE;
    return socket->out.n >= socket->max_out ? EAGAIN : 0;
}

static size_t may_send(struct testing__socket *socket, size_t n)
{
    size_t room = socket->max_out - socket->out.n;

    if (n > room)
        n = room;
    if (socket->world->short_writes && n > 1)
        n = 1 + (size_t)(testing__random(&socket->world->draws) % n);
    return n;
}

static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    struct testing__socket *socket = begin(data, TESTING_SENDMSG, fd);
    size_t n, sent = 0;
    int error;

    if ((flags & MSG_NOSIGNAL) == 0)
        testing__misuse(data, "sendmsg without MSG_NOSIGNAL");
    if (!socket)
        return -1;
    error = obstacle(socket);
    if (error)
        return fail(error);
    n = may_send(socket, room_in(message));
    for (size_t i = 0; sent < n; i++) {
        size_t part = message->msg_iov[i].iov_len;
        if (part > n - sent)
            part = n - sent;
        if (testing__bytes_add(&socket->out, message->msg_iov[i].iov_base, part) != 0)
            return sent ? (ssize_t)sent : fail(ENOBUFS);
        sent += part;
    }
    testing__socket_sent(socket);
    return (ssize_t)sent;
}

static int call_shutdown(void *data, int fd, int how)
{
    struct testing__socket *socket = begin(data, TESTING_SHUTDOWN, fd);

    if (!socket)
        return -1;
    if (socket->state != SOCKET_UP)
        return fail(ENOTCONN);
    if (how != SHUT_WR)
        socket->shut_read = true;
    if (how != SHUT_RD) {
        socket->shut_write = true;
        testing__socket_sent(socket);
    }
    testing__socket_changed(socket);
    return 0;
}

static int call_close(void *data, int fd)
{
    struct testing *t = data;
    int error = testing__called(t, TESTING_CLOSE);
    struct testing__socket *socket = open_socket(t, fd);

    if (!socket)
        return fail(EBADF);
    testing__orphan(socket);
    testing__give_fd(t, socket);
    testing__socket_closed(socket);
    return error ? fail(error) : 0;
}

static uint64_t call_random(void *data)
{
    return testing__random(&((struct testing *)data)->env_draws);
}

void testing__sockets_init(struct testing *t)
{
    t->env = (struct linkpool_env){
        .data = t,
        .socket = call_socket,
        .connect = call_connect,
        .bind = call_bind,
        .setsockopt = call_setsockopt,
        .getsockopt = call_getsockopt,
        .recvmsg = call_recvmsg,
        .sendmsg = call_sendmsg,
        .shutdown = call_shutdown,
        .close = call_close,
        .realloc = testing__realloc,
        .random = call_random,
    };
}
