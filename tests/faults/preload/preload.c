/* preload.c - a library to be loaded before a program (LD_PRELOAD): one of its system calls fails when its turn comes.
 *
 * FAULT_CALL   socket, connect, recvmsg, sendmsg, getsockopt, close, accept4 or epoll_ctl
 * FAULT_NTH    the first to fail, from 1
 * FAULT_TIMES  how many fail; 1 when not set
 * FAULT_ERROR  an errno as a number; or "short": of recvmsg and sendmsg, one byte moves
 * FAULT_NOTE   a file that gets a line for each that failed
 *
 * Counted are the calls of the library's links alone: non-blocking sockets, and what happens to those that connect();
 * recv() counts as recvmsg, and send() as sendmsg. accept4() is counted as it comes. Close fails as on Linux: the
 * descriptor is closed nevertheless. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DESCRIPTORS = 65536,
    SHORT = -1
};

static bool connects[DESCRIPTORS]; /* by descriptor: it has called connect() */
static int count;                  /* of the calls that count */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int number(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value && *value ? atoi(value) : otherwise;
}

static void note(const char *call)
{
    const char *path = getenv("FAULT_NOTE");
    int fd = path ? REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd < 0)
        return;
    if (write(fd, call, strlen(call)) < 0 || write(fd, "\n", 1) < 0)
        abort(); /* the test would count on it */
    REAL(close)(fd);
}

/* 0, or what this call is to say. One thread calls: the proxy's own, by default. */
static int fault(const char *call)
{
    const char *wanted = getenv("FAULT_CALL"), *error = getenv("FAULT_ERROR");
    int nth = number("FAULT_NTH", 1);

    if (!wanted || !error || strcmp(wanted, call) != 0)
        return 0;
    count++;
    if (count < nth || count >= nth + number("FAULT_TIMES", 1))
        return 0;
    note(call);
    return strcmp(error, "short") != 0 ? atoi(error) : SHORT;
}

static bool is_link(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && connects[fd];
}

static int fail(int error)
{
    errno = error;
    return -1;
}

int socket(int domain, int type, int protocol)
{
    int error = type & SOCK_NONBLOCK ? fault("socket") : 0;

    return error ? fail(error) : REAL(socket)(domain, type, protocol);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int error;

    if (fd >= 0 && fd < DESCRIPTORS)
        connects[fd] = true;
    error = fault("connect");
    return error ? fail(error) : REAL(connect)(fd, address, size);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    int error = is_link(fd) ? fault("getsockopt") : 0;

    return error ? fail(error) : REAL(getsockopt)(fd, level, name, value, size);
}

/* Its first byte. */
static struct msghdr cut(const struct msghdr *message, struct iovec *part)
{
    struct msghdr first = *message;

    *part = message->msg_iov[0];
    part->iov_len = part->iov_len ? 1 : 0;
    first.msg_iov = part;
    first.msg_iovlen = 1;
    return first;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    int error = is_link(fd) ? fault("recvmsg") : 0;
    struct iovec part;
    struct msghdr first;

    if (error > 0)
        return fail(error);
    if (!error)
        return REAL(recvmsg)(fd, message, flags);
    first = cut(message, &part);
    return REAL(recvmsg)(fd, &first, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    int error = is_link(fd) ? fault("sendmsg") : 0;
    struct iovec part;
    struct msghdr first;

    if (error > 0)
        return fail(error);
    if (!error)
        return REAL(sendmsg)(fd, message, flags);
    first = cut(message, &part);
    return REAL(sendmsg)(fd, &first, flags);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    int error = is_link(fd) ? fault("recvmsg") : 0;

    return error > 0 ? fail(error) : REAL(recv)(fd, bytes, error && n ? 1 : n, flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    int error = is_link(fd) ? fault("sendmsg") : 0;

    return error > 0 ? fail(error) : REAL(send)(fd, bytes, error && n ? 1 : n, flags);
}

int close(int fd)
{
    bool was_link = is_link(fd);
    int answer, error;

    if (was_link)
        connects[fd] = false;
    answer = REAL(close)(fd);
    error = was_link ? fault("close") : 0;
    return error ? fail(error) : answer;
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    int error = fault("accept4");

    return error ? fail(error) : REAL(accept4)(fd, address, size, flags);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    int error = operation == EPOLL_CTL_ADD && is_link(fd) ? fault("epoll_ctl") : 0; /* what needs memory */

    return error ? fail(error) : REAL(epoll_ctl)(epoll, operation, fd, event);
}
