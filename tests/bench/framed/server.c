/* server.c - the bare server: each request is answered with itself. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/framed/bare.h"

static void on_frame(struct bare_conn *conn, unsigned type, uint32_t id, const unsigned char *payload, uint32_t n)
{
    static const unsigned char ack[12] = {0, 0, 0, 1, 0, 16, 0, 0, 0, 0, BARE_CHANNELS >> 8, BARE_CHANNELS & 255};

    if (type == BARE_REQUEST)
        bare_put(conn, BARE_ANSWER, id, payload, n);
    else if (type == BARE_HELLO)
        bare_put(conn, BARE_HELLO_ACK, 0, ack, sizeof ack);
}

static void accept_one(int listening, int epoll)
{
    int one = 1, fd = accept(listening, NULL, NULL);

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bare_new(fd, epoll, NULL);
}

static void close_conn(struct bare_conn *conn)
{
    close(conn->fd);
    free(conn);
}

_Noreturn void bare_serve(int listening, int control)
{
    struct epoll_event events[64], event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    event.data.ptr = &listening;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
    event.data.ptr = &control;
    epoll_ctl(epoll, EPOLL_CTL_ADD, control, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            struct bare_conn *conn = events[i].data.ptr;
            if (events[i].data.ptr == &control)
                _exit(0);
            if (events[i].data.ptr == &listening)
                accept_one(listening, epoll);
            else if (bare_ready(conn, events[i].events, on_frame))
                close_conn(conn);
        }
    }
}
