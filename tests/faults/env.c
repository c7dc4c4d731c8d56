/* env.c - an env that hands each call on to the world's, but for those whose turn it is to fail.
 *
 * What fails does not happen, but where a system does it nevertheless: a close() that fails has closed, a connect()
 * that is interrupted goes on. */
#include "tests/faults/env.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const struct linkpool_env *real(const struct scene *scene)
{
    return testing_env(scene->world.t);
}

/* What this call is to say: 0, or an error. */
static int fault(struct scene *scene, int call)
{
    struct scene_fault *fault = &scene->fault;

    if (fault->call != call || !fault->at)
        return 0;
    fault->count++;
    if (fault->count != fault->at && !(fault->from_then && fault->count > fault->at))
        return 0;
    fault->met = true;
    return fault->error ? fault->error : ENOMEM;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static int call_socket(void *data, int domain, int type, int protocol)
{
    int error = fault(data, CALL_SOCKET);

    return error ? fail(error) : real(data)->socket(real(data)->data, domain, type, protocol);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    int error = fault(data, CALL_CONNECT);

    if (error == EINTR)
        real(data)->connect(real(data)->data, fd, address, size);
    return error ? fail(error) : real(data)->connect(real(data)->data, fd, address, size);
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    int error = fault(data, CALL_BIND);

    return error ? fail(error) : real(data)->bind(real(data)->data, fd, address, size);
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    int error = fault(data, CALL_SETSOCKOPT);

    return error ? fail(error) : real(data)->setsockopt(real(data)->data, fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    int error = fault(data, CALL_GETSOCKOPT), answer;

    if (error && !(error & IN_VALUE))
        return fail(error);
    answer = real(data)->getsockopt(real(data)->data, fd, level, name, value, size);
    if (error)
        *(int *)value = error & ~IN_VALUE;
    return answer;
}

/* The first byte of what was to move. */
static struct msghdr first_byte(const struct msghdr *message, struct iovec *part)
{
    struct msghdr cut = *message;
    size_t i = 0;

    while (i + 1 < message->msg_iovlen && !message->msg_iov[i].iov_len)
        i++;
    *part = message->msg_iov[i];
    part->iov_len = part->iov_len ? 1 : 0;
    cut.msg_iov = part;
    cut.msg_iovlen = 1;
    return cut;
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    int error = fault(data, CALL_RECVMSG);
    struct iovec part;
    struct msghdr cut;

    if (!error)
        return real(data)->recvmsg(real(data)->data, fd, message, flags);
    if (error != SHORT)
        return fail(error);
    cut = first_byte(message, &part);
    return real(data)->recvmsg(real(data)->data, fd, &cut, flags);
}

static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    int error = fault(data, CALL_SENDMSG);
    struct iovec part;
    struct msghdr cut;

    if (!error)
        return real(data)->sendmsg(real(data)->data, fd, message, flags);
    if (error != SHORT)
        return fail(error);
    cut = first_byte(message, &part);
    return real(data)->sendmsg(real(data)->data, fd, &cut, flags);
}

static int call_shutdown(void *data, int fd, int how)
{
    int error = fault(data, CALL_SHUTDOWN);

    return error ? fail(error) : real(data)->shutdown(real(data)->data, fd, how);
}

static int call_close(void *data, int fd)
{
    int error = fault(data, CALL_CLOSE), answer = real(data)->close(real(data)->data, fd);

    return error ? fail(error) : answer;
}

/* For sites.sh: who asked for the memory that was refused, frame by frame, at the end of the file it names. */
static void note_who_asked(void)
{
    const char *path = getenv("FAULTS_STACKS");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    void *frames[64];

    if (fd < 0)
        return;
    backtrace_symbols_fd(frames, backtrace(frames, 64), fd);
    close(fd);
}

static void *call_realloc(void *data, void *memory, size_t was, size_t size)
{
    struct scene *scene = data;

    if (!memory && size == scene->looks_for)
        scene->has_found = true;
    if (size && fault(data, CALL_NONE)) {
        note_who_asked();
        return NULL;
    }
    return real(data)->realloc(real(data)->data, memory, was, size);
}

static uint64_t call_random(void *data)
{
    return real(data)->random(real(data)->data);
}

void env_begin(struct scene *scene)
{
    scene->env = (struct linkpool_env){.data = scene,
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
        .random = call_random};
}
