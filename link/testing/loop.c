/* loop.c - the same peers on a real loop: real listening sockets at loopback or unix addresses.
 *
 * A peer has a driver of its own, and its timers share that driver's one alarm. A socket here is read once a turn and
 * written as its peer speaks. What a program cannot make a real kernel do is approximated, as testing.h says. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

enum {
    MAX_FILLERS = 16
};                                         /* Linux lets backlog + 1 wait; a few more show that it is full */
static const double retry_accepting = 0.1; /* when descriptors have run out */

enum door {
    DOOR_NONE,
    DOOR_CLOSED /* bound, so that the port stays ours */,
    DOOR_OPEN,
    DOOR_BLOCKED
};

struct loop_peer {
    struct testing_peer peer;
    struct driver *driver;
    struct testing__heap heap;
    uint64_t draws;
    struct link_address address;
    enum door door;
    int listener;
    struct driver_io io;
    struct testing__timer retry;
    int fillers[MAX_FILLERS];
    unsigned n_fillers;
    struct wire *silenced;
};

struct wire {
    struct driver_io io;
    struct loop_peer *loop;
    struct testing_conn *conn;
    int fd;
    bool watched, blocked;
    struct wire *prev, *next; /* of the silenced */
};

static struct loop_peer *loop_of(struct testing_peer *peer)
{
    return testing__of(peer, struct loop_peer, peer);
}

static int open_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* ---- one connection ---- */

static void close_wire(struct wire *wire, bool by_reset)
{
    struct linger linger = {.l_onoff = 1};

    if (wire->watched)
        wire->loop->driver->ops->io_stop(wire->loop->driver, &wire->io);
    if (by_reset)
        setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(wire->fd);
    free(wire);
}

static void finish(struct testing_conn *conn)
{
    close_wire(conn->wire, false);
    conn->wire = NULL;
}

static void reset(struct testing_conn *conn)
{
    close_wire(conn->wire, true);
    conn->wire = NULL;
}

static void silence(struct testing_conn *conn)
{
    struct wire *wire = conn->wire;

    if (wire->watched)
        wire->loop->driver->ops->io_stop(wire->loop->driver, &wire->io);
    wire->watched = false;
    DL_APPEND(wire->loop->silenced, wire);
    conn->wire = NULL;
}

static void watch(struct wire *wire)
{
    struct testing_conn *conn = wire->conn;
    struct driver *driver = wire->loop->driver;
    unsigned events =
        (testing__conn_appetite(conn) && !conn->eof ? LINKPOOL_READ : 0u) | (wire->blocked ? LINKPOOL_WRITE : 0u);

    if (wire->watched)
        driver->ops->io_events(driver, &wire->io, events);
    else if (events)
        wire->watched = driver->ops->io_start(driver, &wire->io, wire->fd, events) == 0;
}

static size_t deliver(struct testing_conn *conn, const void *bytes, size_t n)
{
    struct wire *wire = conn->wire;
    ssize_t sent = send(wire->fd, bytes, n, MSG_NOSIGNAL);

    if (sent < 0)
        sent = errno == EAGAIN ? 0 : (ssize_t)n; /* lost: reading will tell */
    wire->blocked = (size_t)sent < n;
    watch(wire);
    return (size_t)sent;
}

static void read_on(struct testing_conn *conn)
{
    watch(conn->wire);
}

static bool option(const struct testing_conn *conn, int level, int name, int *value)
{
    (void)conn, (void)level, (void)name, (void)value;
    return false;
}

static void hear(struct wire *wire)
{
    unsigned char piece[TESTING__PIECE];
    struct testing_conn *conn = wire->conn;
    size_t n = testing__conn_appetite(conn);
    ssize_t got;

    if (n == 0 || conn->eof)
        return;
    got = recv(wire->fd, piece, n < sizeof piece ? n : sizeof piece, 0);
    if (got > 0) {
        testing__conn_take(conn, piece, (size_t)got);
    } else if (got == 0) {
        testing__conn_eof(conn);
    } else if (errno != EAGAIN) {
        finish(conn);
        testing__conn_broken(conn);
    }
}

static void on_io(struct driver_io *io, unsigned events)
{
    struct wire *wire = testing__of(io, struct wire, io);
    struct testing_conn *conn = wire->conn;
    struct testing_peer *peer = conn->peer;

    peer->busy++; /* conn stays, whatever is freed meanwhile */
    if (events & LINKPOOL_WRITE && wire->blocked) {
        wire->blocked = false;
        testing__conn_room(conn);
    }
    if (events & LINKPOOL_READ && conn->wire)
        hear(wire);
    if (conn->wire)
        watch(wire);
    testing__peer_leave(peer);
}

/* ---- accepting ---- */

static void mind_the_door(struct loop_peer *loop)
{
    bool accepts = loop->door == DOOR_OPEN && !testing__peer_full(&loop->peer) && !loop->retry.place;

    if (loop->door == DOOR_OPEN)
        loop->driver->ops->io_events(loop->driver, &loop->io, accepts ? LINKPOOL_READ : 0);
}

static void on_retry(struct testing__timer *timer)
{
    mind_the_door(testing__of(timer, struct loop_peer, retry));
}

static void let_in(struct loop_peer *loop, int fd, const struct link_address *client)
{
    struct wire *wire = calloc(1, sizeof *wire);

    if (!wire) {
        close(fd);
        return;
    }
    *wire = (struct wire){.io.on = on_io, .loop = loop, .fd = fd};
    wire->conn = testing__conn_new(&loop->peer, wire, client);
    if (!wire->conn) {
        close(fd);
        free(wire);
        return;
    }
    testing__peer_attempt(&loop->peer);
    testing__conn_arrive(wire->conn, testing__peer_connect_delay(&loop->peer));
}

static void on_knock(struct driver_io *io, unsigned events)
{
    struct loop_peer *loop = testing__of(io, struct loop_peer, io);

    (void)events;
    while (!testing__peer_full(&loop->peer)) {
        struct link_address client = {.size = sizeof client.name};
        int fd = accept(loop->listener, &client.name.any, &client.size);
        if (fd >= 0) {
            fcntl(fd, F_SETFL, O_NONBLOCK);
            fcntl(fd, F_SETFD, FD_CLOEXEC);
            let_in(loop, fd, &client);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            testing__arm(&loop->heap, &loop->retry, loop->driver->now + retry_accepting);
        break;
    }
    mind_the_door(loop);
}

static void fill(struct loop_peer *loop)
{
    while (loop->n_fillers < MAX_FILLERS) {
        int fd = open_socket(loop->address.name.any.sa_family);
        struct pollfd up = {.fd = fd, .events = POLLOUT};
        if (fd < 0)
            return;
        loop->fillers[loop->n_fillers++] = fd;
        if (connect(fd, &loop->address.name.any, loop->address.size) != 0 && (errno == EAGAIN || poll(&up, 1, 0) == 0))
            return;
    }
}

static void shut_door(struct loop_peer *loop)
{
    const struct sockaddr_un *un = &loop->address.name.un;

    if (loop->door == DOOR_NONE)
        return;
    loop->driver->ops->io_stop(loop->driver, &loop->io);
    while (loop->n_fillers)
        close(loop->fillers[--loop->n_fillers]);
    close(loop->listener);
    if (un->sun_family == AF_UNIX && un->sun_path[0])
        unlink(un->sun_path);
    loop->door = DOOR_NONE;
}

static enum door door_of(enum testing_behaviour behaviour)
{
    switch (behaviour) {
    case TESTING_BLACK_HOLE:
        return DOOR_BLOCKED;
    case TESTING_REFUSE:
    case TESTING_UNREACHABLE:
    case TESTING_NO_HOST:
        return DOOR_CLOSED;
    default:
        return DOOR_OPEN;
    }
}

/** Binds, and listens unless closed. Returns 0, or -1 and errno. */
static int set_door(struct loop_peer *loop, enum door door)
{
    int yes = 1, backlog = door == DOOR_BLOCKED ? 0 : (int)loop->peer.max_waiting, error;

    loop->listener = open_socket(loop->address.name.any.sa_family);
    if (loop->listener < 0)
        return -1;
    setsockopt(loop->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(loop->listener, &loop->address.name.any, loop->address.size) != 0)
        goto no_bind;
    loop->door = door;
    if (getsockname(loop->listener, &loop->address.name.any, &loop->address.size) != 0 ||
        (door != DOOR_CLOSED && listen(loop->listener, backlog) != 0))
        goto no_listen;
    if (door == DOOR_BLOCKED)
        fill(loop);
    if (door == DOOR_OPEN && loop->driver->ops->io_start(loop->driver, &loop->io, loop->listener, LINKPOOL_READ) != 0) {
        errno = ENOMEM;
        goto no_listen;
    }
    return 0;
no_listen:
    error = errno;
    shut_door(loop);
    errno = error;
    return -1;
no_bind:
    error = errno;
    close(loop->listener);
    errno = error;
    return -1;
}

static int behave(struct testing_peer *peer)
{
    struct loop_peer *loop = loop_of(peer);
    enum door door = door_of(peer->behaviour);

    if (door == loop->door) {
        mind_the_door(loop);
        return 0;
    }
    shut_door(loop);
    return set_door(loop, door);
}

/* ---- the peer ---- */

static void unplace(struct testing_peer *peer)
{
    shut_door(loop_of(peer));
}

static void destroy(struct testing_peer *peer)
{
    struct loop_peer *loop = loop_of(peer);
    struct wire *wire, *next;

    DL_FOREACH_SAFE (loop->silenced, wire, next)
        close_wire(wire, true);
    driver_free(loop->driver);
    free(loop->heap.at);
    free(loop);
}

static const struct testing__ground real_ground = {
    .deliver = deliver,
    .finish = finish,
    .reset = reset,
    .silence = silence,
    .read_on = read_on,
    .option = option,
    .behave = behave,
    .unplace = unplace,
    .destroy = destroy,
};

static void set_alarm(struct testing__heap *heap)
{
    struct loop_peer *loop = testing__of(heap, struct loop_peer, heap);
    const struct testing__timer *top = testing__top(heap);

    loop->driver->ops->alarm(loop->driver, top ? top->due : INFINITY);
}

static void on_alarm(struct driver *driver)
{
    struct loop_peer *loop = driver->owner;
    struct testing__timer *timer;

    loop->peer.busy++;
    while (!loop->peer.gone && (timer = testing__top(&loop->heap)) && timer->due <= driver->now) {
        testing__disarm(&loop->heap, timer);
        timer->fire(timer);
    }
    if (!loop->peer.gone)
        set_alarm(&loop->heap);
    testing__peer_leave(&loop->peer);
}

/** As link_address_parse(), and port 0 besides. */
static int parse(const char *text, struct link_address *address)
{
    size_t n = strlen(text);
    char one[LINK_ADDRESS_TEXT];

    if (n < 2 || n >= sizeof one || strcmp(text + n - 2, ":0") != 0 || strncmp(text, "unix:", 5) == 0)
        return link_address_parse(text, n, address, NULL, 0);
    memcpy(one, text, n + 1);
    one[n - 1] = '1';
    if (link_address_parse(one, n, address, NULL, 0) != 0)
        return LINKPOOL_EADDRESS;
    address->name.in.sin_port = 0; /* in6 has it at the same place */
    return 0;
}

static struct loop_peer *new_loop_peer(struct ev_loop *ev, const struct link_address *address)
{
    struct loop_peer *loop = calloc(1, sizeof *loop);

    if (!loop)
        return NULL;
    loop->driver = driver_ev_new(ev);
    if (!loop->driver) {
        free(loop);
        return NULL;
    }
    loop->driver->owner = loop;
    loop->driver->on_alarm = on_alarm;
    loop->heap.now = &loop->driver->now;
    loop->heap.top_changed = set_alarm;
    loop->address = *address;
    loop->io.on = on_knock;
    loop->retry.fire = on_retry;
    loop->peer.ground = &real_ground;
    loop->peer.draws = &loop->draws;
    return loop;
}

struct testing_peer *testing_peer_on_loop(struct ev_loop *ev, const char *address, enum testing_behaviour behaviour)
{
    struct link_address parsed;
    struct loop_peer *loop;
    int error = ENOMEM;

    if (parse(address, &parsed) != 0) {
        errno = EINVAL;
        return NULL;
    }
    loop = new_loop_peer(ev, &parsed);
    if (!loop)
        return NULL;
    if (testing__hold(&loop->heap) != 0)
        goto no_peer;
    if (testing__peer_init(&loop->peer, &loop->heap, behaviour) != 0)
        goto no_peer;
    if (set_door(loop, door_of(behaviour)) != 0) {
        error = errno;
        goto no_door;
    }
    link_address_format(&loop->address, loop->peer.text);
    return &loop->peer;
no_door:
    testing__peer_discard(&loop->peer);
no_peer:
    destroy(&loop->peer);
    errno = error;
    return NULL;
}
