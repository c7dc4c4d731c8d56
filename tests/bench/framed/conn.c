/* conn.c - one side of a bare connection: frames in, frames out. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tests/bench/framed/bare.h"

static void put32(unsigned char *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, 4);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static void watch(struct bare_conn *conn, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (conn->is_stuck ? EPOLLOUT : 0), .data.ptr = conn};

    if (epoll_ctl(conn->epoll, operation, conn->fd, &event))
        bare_die("epoll_ctl");
}

struct bare_conn *bare_new(int fd, int epoll, void *data)
{
    struct bare_conn *conn = malloc(sizeof *conn);

    if (!conn)
        bare_die("out of memory");
    conn->fd = fd;
    conn->epoll = epoll;
    conn->data = data;
    conn->is_stuck = 0;
    conn->n_in = conn->n_out = conn->gone = 0;
    watch(conn, EPOLL_CTL_ADD);
    return conn;
}

void bare_write(struct bare_conn *conn)
{
    ssize_t sent;
    int was_stuck = conn->is_stuck;

    if (conn->gone == conn->n_out)
        return;
    sent = send(conn->fd, conn->out + conn->gone, conn->n_out - conn->gone, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN)
        bare_die("send");
    if (sent > 0)
        conn->gone += (size_t)sent;
    conn->is_stuck = conn->gone < conn->n_out;
    if (!conn->is_stuck)
        conn->gone = conn->n_out = 0;
    if (conn->is_stuck != was_stuck)
        watch(conn, EPOLL_CTL_MOD);
}

void bare_put(struct bare_conn *conn, unsigned type, uint32_t id, const void *payload, uint32_t n)
{
    unsigned char *at;

    if (conn->n_out + BARE_HEAD + n > BARE_BUFFER)
        bare_die("the other side reads too slowly");
    at = conn->out + conn->n_out;
    put32(at, n);
    put32(at + 4, (uint32_t)type << 24);
    put32(at + 8, id);
    memcpy(at + BARE_HEAD, payload, n);
    conn->n_out += BARE_HEAD + n;
}

/* All frames that are whole. What is left of the last moves to the front. */
static void take(struct bare_conn *conn, bare_on_frame *on_frame)
{
    const unsigned char *at = conn->in, *end = conn->in + conn->n_in;

    while (end - at >= BARE_HEAD) {
        uint32_t n = get32(at);
        if (n > BARE_BUFFER - BARE_HEAD)
            bare_die("a frame that is too large");
        if ((size_t)(end - at) < BARE_HEAD + n)
            break;
        on_frame(conn, at[4], get32(at + 8), at + BARE_HEAD, n);
        at += BARE_HEAD + n;
    }
    conn->n_in = (size_t)(end - at);
    if (conn->n_in && at != conn->in)
        memmove(conn->in, at, conn->n_in);
}

int bare_ready(struct bare_conn *conn, unsigned events, bare_on_frame *on_frame)
{
    size_t room;
    ssize_t got = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        do {
            room = BARE_BUFFER - conn->n_in;
            got = recv(conn->fd, conn->in + conn->n_in, room, MSG_DONTWAIT);
            if (!got || (got < 0 && errno != EAGAIN))
                return -1;
            if (got > 0) {
                conn->n_in += (size_t)got;
                take(conn, on_frame);
            }
        } while (got > 0 && (size_t)got == room);
    bare_write(conn);
    return 0;
}
