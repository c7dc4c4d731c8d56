/* env_system.c - the system as it is: its own calls, malloc, random bits from the kernel.
 *
 * Every descriptor made here, or received, closes on exec; no send raises SIGPIPE; reads and writes that a signal
 * cut off are made again. Nothing is kept between calls, so that any thread may use it, and a child after fork()
 * draws other numbers than its parent. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "linkpool/driver.h"

static int call_socket(void *data, int domain, int type, int protocol)
{
    (void)data;
    return socket(domain, type | SOCK_CLOEXEC, protocol);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    (void)data;
    return connect(fd, address, size);
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    (void)data;
    return bind(fd, address, size);
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    (void)data;
    return setsockopt(fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    (void)data;
    return getsockopt(fd, level, name, value, size);
}

/** One part and nothing beside, as most are: recv() and send() do the same, and the kernel has no header to copy and to
 * check, which is 120 ns of each call. */
static bool is_plain(const struct msghdr *message)
{
    return message->msg_iovlen == 1 && !message->msg_name && !message->msg_control;
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    const struct iovec *part = message->msg_iov;
    ssize_t n;

    (void)data;
    do
        n = is_plain(message) ? recv(fd, part->iov_base, part->iov_len, flags)
                              : recvmsg(fd, message, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    const struct iovec *part = message->msg_iov;
    ssize_t n;

    (void)data;
    do
        n = is_plain(message) ? send(fd, part->iov_base, part->iov_len, flags | MSG_NOSIGNAL)
                              : sendmsg(fd, message, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static int call_shutdown(void *data, int fd, int how)
{
    (void)data;
    return shutdown(fd, how);
}

/** Never made again after EINTR: Linux has let go of the number by then, and another thread may have it already. */
static int call_close(void *data, int fd)
{
    (void)data;
    return close(fd);
}

static void *call_realloc(void *data, void *memory, size_t was, size_t size)
{
    (void)data, (void)was;
    if (size == 0) { /* what realloc() makes of 0 is up to the library, and undefined from C23 on */
        free(memory);
        return NULL;
    }
    return realloc(memory, size);
}

/** Spreads a seed over all 64 bits: the finalizer of Steele, Lea and Flood's SplitMix64 (OOPSLA 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** For systems that refuse getrandom(): a sandbox's filter, or the first moments after boot. */
static uint64_t guess(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return mix(
        mix((uint64_t)getpid() ^ (uint64_t)(uintptr_t)&t) + (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

/**
 * Asks the kernel each time. A draw is made a few times per connection attempt, where a system call is lost beside
 * connect(); a generator of our own would need a state per thread and care after fork(), lest parent and
 * child reconnect in step.
 */
static uint64_t call_random(void *data)
{
    uint64_t bits;

    (void)data;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        return guess();
    return bits;
}

const struct linkpool_env linkpool_env_system = {
    .data = NULL,
    .socket = call_socket,
    .connect = call_connect,
    .bind = call_bind,
    .setsockopt = call_setsockopt,
    .getsockopt = call_getsockopt,
    .recvmsg = call_recvmsg,
    .sendmsg = call_sendmsg,
    .shutdown = call_shutdown,
    .close = call_close,
    .realloc = call_realloc,
    .random = call_random,
};
