/* testing_internal.h - what the files of the testing kit share.
 *
 * A peer is scripted once (peer.c, conn.c, words.c) and stands on one of two grounds: the fake network (network.c,
 * sockets.c, wire.c) or a real loop (loop.c). The ground moves bytes; the script decides them. Memory of the kit itself
 * is malloc's: what is tested has the env's allocator to itself. */
#ifndef LINKPOOL_TESTING_INTERNAL_H
#define LINKPOOL_TESTING_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "link/address.h"
#include "linkpool/testing.h"

enum {
    TESTING__PIECE = 16384,  /* bytes `serve` gets at a time */
    TESTING__ANSWER = 65536, /* bytes it may write */
    TESTING__KEPT = 65536    /* the last bytes a peer has received */
};

/* ---- timers.c: a heap ---- */

struct testing__timer {
    double due;
    size_t place; /* in the heap, from 1; 0: not armed */
    void (*fire)(struct testing__timer *timer);
};

struct testing__place { /* the order beside the pointer: comparing touches no timer */
    double due;
    uint64_t sequence; /* same time: first armed, first fired */
    struct testing__timer *timer;
};

struct testing__heap {
    struct testing__place *at; /* from 1 */
    size_t n, room, held;      /* held <= room: arming what is held cannot fail */
    uint64_t sequence;
    const double *now;
    void (*top_changed)(struct testing__heap *heap); /* may be NULL */
};

int testing__hold(struct testing__heap *heap); /* room for one more timer: 0, or LINKPOOL_ENOMEM */
void testing__unhold(struct testing__heap *heap, struct testing__timer *timer);
void testing__arm(struct testing__heap *heap, struct testing__timer *timer, double due); /* anew, if it was armed */
void testing__disarm(struct testing__heap *heap, struct testing__timer *timer);
struct testing__timer *testing__top(const struct testing__heap *heap); /* NULL: none */

/* ---- bytes.c: a queue of bytes in one piece of memory; all zero is an empty one ---- */

struct testing__bytes {
    unsigned char *memory;
    size_t from, n, room;
};

int testing__bytes_add(struct testing__bytes *bytes, const void *from, size_t n); /* 0, or LINKPOOL_ENOMEM */
void testing__bytes_drop(struct testing__bytes *bytes, size_t n);
void testing__bytes_free(struct testing__bytes *bytes);
static inline const unsigned char *testing__bytes_at(const struct testing__bytes *bytes)
{
    return bytes->memory + bytes->from;
}

/* ---- random.c: splitmix64 ---- */

uint64_t testing__random(uint64_t *state);
double testing__draw(uint64_t *state); /* uniform in [0, 1) */

/* ---- peer.c, conn.c, words.c: the script ---- */

/** What a peer stands on. finish, reset and silence let go of the wire: conn->wire is NULL after them. */
struct testing__ground {
    size_t (*deliver)(struct testing_conn *conn, const void *bytes, size_t n); /* fewer: testing__conn_room() follows */
    void (*finish)(struct testing_conn *conn);
    void (*reset)(struct testing_conn *conn);
    void (*silence)(struct testing_conn *conn);
    void (*read_on)(struct testing_conn *conn); /* its appetite is back */
    bool (*option)(const struct testing_conn *conn, int level, int name, int *value);
    int (*behave)(struct testing_peer *peer);   /* its behaviour or what waits has changed: 0, or -1 and errno */
    void (*unplace)(struct testing_peer *peer); /* it leaves its address; its connections have been reset */
    void (*destroy)(struct testing_peer *peer); /* frees the memory, and what the ground keeps beside it */
};

struct testing__word; /* words.c: something still to be said */

enum testing__conn_state {
    CONN_COMING, /* its connect delay runs; in peer->coming */
    CONN_QUEUED, /* waits to be accepted; in peer->queue */
    CONN_OPEN,   /* in peer->open */
    CONN_ENDED   /* over, `closed` to be told; in peer->ended; no wire */
};

struct testing_conn {
    struct testing_peer *peer;
    void *wire; /* the ground's: a fake socket, or a real one; NULL: let go of */
    enum testing__conn_state state;
    bool swallows;               /* accepted by a SILENT peer */
    bool eof;                    /* the client has said all */
    bool blocked;                /* the ground has no room: testing__conn_room() goes on */
    struct testing__timer timer; /* COMING: the delay; OPEN: the next word; ENDED: the telling */
    struct testing__word *words;
    double next_word; /* not before this: the drip's interval */
    size_t appetite;  /* bytes it still reads */
    uint64_t received, sent;
    void *data;
    struct testing_conn *prev, *next; /* in the list of its state */
    char client[LINK_ADDRESS_TEXT];
};

struct testing_peer {
    const struct testing__ground *ground;
    struct testing__heap *heap;
    uint64_t *draws;
    char text[LINK_ADDRESS_TEXT];
    enum testing_behaviour behaviour;
    ssize_t (*serve)(void *data, const void *in, size_t n, void *out, size_t room);
    void *serve_data;
    struct testing_server server;
    bool scripted; /* server is in force, not serve */
    struct testing__bytes greeting;
    double connect_delay, answer_delay, spread;
    size_t drip;
    double drip_interval;
    size_t cut_after;
    enum link_reason cut_how;
    size_t window;
    unsigned max_waiting;
    double accept_rate, next_accept;
    struct testing__timer accept_timer;
    struct testing_conn *coming, *queue, *open, *ended; /* utlist */
    unsigned n_waiting, n_open, n_accepted, n_attempts, room_attempts;
    double *attempts;
    uint64_t n_bytes;
    struct testing__bytes kept; /* the last of what came */
    unsigned busy;              /* its callbacks on the stack */
    bool gone;                  /* freed; the memory goes when busy is 0 */
};

int testing__peer_init(struct testing_peer *peer, struct testing__heap *heap, enum testing_behaviour behaviour);
void testing__peer_discard(struct testing_peer *peer); /* frees what it holds; the ground has let go of all wires */
bool testing__peer_full(const struct testing_peer *peer);
double testing__peer_connect_delay(struct testing_peer *peer); /* spread */
void testing__peer_attempt(struct testing_peer *peer);         /* counts one, now */
void testing__peer_leave(struct testing_peer *peer);           /* a callback has returned: the peer may go with this */

struct testing_conn *testing__conn_new(struct testing_peer *peer, void *wire, const struct link_address *client);
void testing__conn_arrive(
    struct testing_conn *conn, double delay);        /* from the loop, at its next event at the earliest */
void testing__conn_queue(struct testing_conn *conn); /* now: from the network's part of a turn */
void testing__conn_free(struct testing_conn *conn);
void testing__conn_take(struct testing_conn *conn, const void *bytes, size_t n); /* n <= its appetite and PIECE */
void testing__conn_eof(struct testing_conn *conn);
void testing__conn_broken(struct testing_conn *conn); /* the client reset it; the ground has let go of the wire */
void testing__conn_cut(struct testing_conn *conn, enum link_reason how);
void testing__conn_drop(struct testing_conn *conn); /* without a word to anybody: its peer goes */
void testing__accept_next(struct testing__timer *timer);
static inline size_t testing__conn_appetite(const struct testing_conn *conn)
{
    return conn->state == CONN_OPEN ? conn->appetite : 0;
}

/* words.c: each returns 0, LINKPOOL_ENOMEM, or LINKPOOL_ESTATE when it is over */
int testing__conn_say(struct testing_conn *conn, double due, const void *bytes, size_t n);
int testing__conn_say_end(struct testing_conn *conn, double due, enum link_reason how);
void testing__conn_room(struct testing_conn *conn); /* after a short deliver */
void testing__speak(struct testing_conn *conn);     /* all that is due */
void testing__words_drop(struct testing_conn *conn);

/* ---- the world ---- */

enum {
    TESTING__FIRST_FD = 1000,
    TESTING__OPTIONS = 8
};

struct testing__watch { /* driver.c: a started driver_io */
    struct driver_io *io;
    struct testing__driver *driver;
    struct testing__socket *socket; /* NULL: its descriptor was closed */
    unsigned events, pending;
    bool firing;
    struct testing__watch *prev, *next;               /* of its socket, or of the world's orphans */
    struct testing__watch *driver_prev, *driver_next; /* of its driver */
    struct testing__watch *fire_prev, *fire_next;     /* of this turn's */
};

struct testing__driver {
    struct driver base;
    struct testing *world;
    struct testing__timer alarm;
    enum {
        NOT_ASKED,
        ASKED,
        TELLING
    } later; /* TELLING: in this turn; in the world's list of that name */
    bool ringing;
    double asleep; /* of the world's, what its owner has been told of */
    struct testing__watch *watches;
    struct testing__driver *prev, *next;             /* of the world */
    struct testing__driver *later_prev, *later_next; /* of those that asked */
    struct testing__driver *ring_prev, *ring_next;   /* of those whose alarm rings in this turn */
};

enum testing__far {
    FAR_NONE,
    FAR_OPEN,
    FAR_CLOSED,
    FAR_SILENT
}; /* what is at the other end */

struct testing__option {
    int level, name, value;
};

struct testing__socket {
    struct testing *world;
    int fd; /* -1: closed by its owner, and goes once the far end knows */
    int domain;
    enum {
        SOCKET_NEW,
        SOCKET_CONNECTING,
        SOCKET_UP,
        SOCKET_DEAD
    } state;
    enum testing__far far;
    struct testing_conn *conn;
    struct testing__bytes in, out;
    size_t max_out;
    int error;                            /* the pending SO_ERROR */
    bool in_ended, shut_read, shut_write; /* the far end's FIN came; ours */
    bool abort, eof_told, lingers_not, busy;
    bool bound;
    struct link_address local, remote;
    double started; /* of the connect() */
    unsigned syn;   /* sent so far, less one */
    struct testing__timer timer;
    struct testing__option options[TESTING__OPTIONS];
    unsigned n_options;
    struct testing__watch *watches;
    bool ready; /* in the world's ready list */
    struct testing__socket *ready_prev, *ready_next;
    struct testing__socket *prev, *next; /* of the world */
};

struct testing__fault { /* the nth from here fails; 0: none */
    uint64_t at;        /* of the count below */
    int error;
    bool all_from_then;
    uint64_t count;
};

struct testing__user { /* a testing_at() */
    struct testing__timer timer;
    struct testing *world;
    void (*fn)(void *data);
    void *data;
    struct testing__user *prev, *next; /* of the world's due ones */
    bool due;
};

struct testing {
    struct linkpool_env env;
    double now;
    double asleep; /* seconds that `now` has not counted */
    struct testing__heap heap;
    uint64_t draws, env_draws, user_draws;
    struct testing__driver *drivers, *asked, *telling, *ringing;
    struct testing__user *due;
    struct testing__watch *firing, *orphans;
    struct testing__socket *ready, *sockets;
    struct testing__fake_peer *peers; /* network.c: a hash from address to peer */
    struct testing__socket **by_fd;
    uint64_t *fd_taken;
    unsigned fd_words, fd_first; /* of fd_taken; the first word that may have room */
    unsigned n_open, max_open;
    uint16_t next_port;
    size_t send_buffer;
    bool short_writes, early_alarms, shuffle;
    struct testing__fault calls[TESTING_CALLS], allocations;
    size_t bytes, blocks;
    unsigned misuses;
    const char *misuse;
    uint64_t still; /* turns since time last went on */
    bool stuck, running, gone;
};

/* driver.c */
void testing__gather(struct testing *t);              /* the watches whose sockets are ready, for this turn */
void testing__fire(struct testing *t);                /* runs them */
bool testing__prune(struct testing *t);               /* whether any socket is ready for a watcher of its own */
void testing__drivers_turn(struct testing *t);        /* sets now and turn */
void testing__drivers_wake(struct testing *t);        /* tells of a sleep */
void testing__drivers_now(struct testing *t);         /* sets now alone */
void testing__ring(struct testing *t);                /* runs the alarms of this turn */
void testing__tell_later(struct testing *t);          /* runs on_later of those that have asked */
void testing__orphan(struct testing__socket *socket); /* its descriptor is being closed */
void testing__drivers_free(struct testing *t);

/* faults.c */
void testing__misuse(struct testing *t, const char *what);
int testing__called(struct testing *t, enum testing_call call); /* counts one: 0, or the errno it must fail with */
void *testing__realloc(void *data, void *memory, size_t was, size_t size);

/* network.c */
struct testing__socket *testing__socket_at(const struct testing *t, int fd); /* NULL: not open */
struct testing__socket *testing__socket_new(struct testing *t, int domain);  /* NULL: out of memory */
void testing__give_fd(struct testing *t, struct testing__socket *socket);
void testing__normal_address(
    struct link_address *to, const struct sockaddr *from, socklen_t size); /* equal places: equal bytes */
void testing__network_free(struct testing *t);
struct testing_peer *testing__peer_at(struct testing *t, const struct link_address *address);
void testing__fake_unplace(struct testing_peer *peer);
void testing__fake_destroy(struct testing_peer *peer);
void testing__socket_let_go(struct testing__socket *socket); /* frees it once nobody has it */

/* sockets.c */
void testing__sockets_init(struct testing *t); /* the env's calls */
bool testing__socket_option(const struct testing__socket *socket, int level, int name, int *value);

/* wire.c */
unsigned testing__socket_events(const struct testing__socket *socket);
void testing__socket_changed(struct testing__socket *socket); /* into the ready list, if a watcher waits for it */
int testing__socket_connect(struct testing__socket *socket, const struct link_address *address); /* 0, or errno */
void testing__socket_sent(struct testing__socket *socket);   /* there is something for the far end */
void testing__socket_closed(struct testing__socket *socket); /* by its owner */
void testing__socket_timer(struct testing__timer *timer);
extern const struct testing__ground testing__fake_ground;

#define testing__of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
