/* env.c - the env of a play: the stage's, with memory that is counted and draws that are the same on both stages. */
#include "tests/sim/seam/play.h"

static void *call_realloc(void *data, void *memory, size_t was, size_t size)
{
    struct play *p = data;
    void *got = p->stage->env->realloc(p->stage->env->data, memory, was, size);

    p->blocks += (!memory && size) - (size_t)(memory && !size);
    p->bytes += size - was;
    return got;
}

/* splitmix64, as everywhere in the tests; the same draws on both stages */
static uint64_t call_random(void *data)
{
    struct play *p = data;
    uint64_t z = p->draws += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The others are the stage's, which get its data. */
#define STAGE_ENV(data) (((struct play *)(data))->stage->env)

static int call_socket(void *data, int domain, int type, int protocol)
{
    return STAGE_ENV(data)->socket(STAGE_ENV(data)->data, domain, type, protocol);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return STAGE_ENV(data)->connect(STAGE_ENV(data)->data, fd, address, size);
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return STAGE_ENV(data)->bind(STAGE_ENV(data)->data, fd, address, size);
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    return STAGE_ENV(data)->setsockopt(STAGE_ENV(data)->data, fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    return STAGE_ENV(data)->getsockopt(STAGE_ENV(data)->data, fd, level, name, value, size);
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    return STAGE_ENV(data)->recvmsg(STAGE_ENV(data)->data, fd, message, flags);
}

static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    return STAGE_ENV(data)->sendmsg(STAGE_ENV(data)->data, fd, message, flags);
}

static int call_shutdown(void *data, int fd, int how)
{
    return STAGE_ENV(data)->shutdown(STAGE_ENV(data)->data, fd, how);
}

static int call_close(void *data, int fd)
{
    return STAGE_ENV(data)->close(STAGE_ENV(data)->data, fd);
}

void play__env(struct play *p)
{
    p->draws = 4;
    p->env = (struct linkpool_env){.data = p,
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
