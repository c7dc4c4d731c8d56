/* acceptor.c - the accept loop and its two reasons to look away: held by its owner, or out of descriptors. */
#define _GNU_SOURCE /* accept4(): in POSIX since 2024 */
#include "examples/common/acceptor.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_A_TURN = 64 /* so that a crowd at the door does not starve those inside */
};
static const double descriptor_pause = 0.1; /* seconds */

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void acceptor_pause(struct acceptor *acceptor)
{
    if (acceptor->io.fd < 0)
        return;
    acceptor->scarce = true;
    ev_io_stop(acceptor->loop, &acceptor->io);
    ev_timer_stop(acceptor->loop, &acceptor->pause);
    ev_timer_set(&acceptor->pause, descriptor_pause, 0);
    ev_timer_start(acceptor->loop, &acceptor->pause);
}

/* Returns false when nobody is at the door. */
static bool accept_one(struct acceptor *acceptor)
{
    int fd = accept4(acceptor->io.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
        acceptor->accepted(acceptor, fd);
    else if (is_shortage(errno))
        acceptor_pause(acceptor);
    else /* but for these two it is about that one client, who is gone */
        return errno != EAGAIN && errno != EWOULDBLOCK;
    return true;
}

static void on_acceptable(struct ev_loop *loop, ev_io *io, int events)
{
    struct acceptor *acceptor = io->data;

    (void)loop, (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && ev_is_active(io); i++)
        if (acceptor->may != NULL && !acceptor->may(acceptor))
            acceptor_hold(acceptor);
        else if (!accept_one(acceptor))
            return;
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct acceptor *acceptor = timer->data;

    (void)events;
    if (!acceptor->held)
        ev_io_start(loop, &acceptor->io);
}

void acceptor_start(struct acceptor *acceptor, struct ev_loop *loop, int fd)
{
    acceptor->loop = loop;
    acceptor->held = acceptor->scarce = false;
    ev_io_init(&acceptor->io, on_acceptable, fd, EV_READ);
    acceptor->io.data = acceptor;
    ev_timer_init(&acceptor->pause, on_pause_over, descriptor_pause, 0);
    acceptor->pause.data = acceptor;
    ev_io_start(loop, &acceptor->io);
}

void acceptor_hold(struct acceptor *acceptor)
{
    acceptor->held = true;
    ev_io_stop(acceptor->loop, &acceptor->io);
}

void acceptor_resume(struct acceptor *acceptor)
{
    if (acceptor->io.fd < 0)
        return;
    acceptor->held = false;
    ev_timer_stop(acceptor->loop, &acceptor->pause);
    ev_io_start(acceptor->loop, &acceptor->io);
}

bool acceptor_is_paused(const struct acceptor *acceptor)
{
    return !ev_is_active(&acceptor->io);
}

void acceptor_stop(struct acceptor *acceptor)
{
    if (acceptor->io.fd < 0)
        return;
    ev_timer_stop(acceptor->loop, &acceptor->pause);
    ev_io_stop(acceptor->loop, &acceptor->io);
    close(acceptor->io.fd);
    acceptor->io.fd = -1;
}
