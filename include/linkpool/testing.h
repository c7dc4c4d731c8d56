/* testing.h - virtual time and fake peers: code that fans out is tested in microseconds, repeatable from a seed.
 *
 * A struct testing is a world of its own: a clock that stands still until it is run, drivers on that clock, a
 * network of fake sockets with scripted peers at its far ends, and an allocator that counts and can be told to fail.
 *
 *     struct testing *t = testing_new(1);
 *     struct testing_peer *good = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
 *     testing_peer_add(t, "10.0.0.2:80", TESTING_BLACK_HOLE);
 *     testing_peer_serve(good, testing_echo, NULL);
 *     options.env = testing_env(t);
 *     struct pool *pool = pool_new_on(testing_driver(t), &options);
 *     ... what the program does ...
 *     testing_run_until(t, all_answered, &call, 10);
 *     pool_free(pool);
 *     assert(testing_misuses(t) == 0 && testing_open_descriptors(t) == 0 && testing_blocks(t) == 0);
 *     testing_free(t);
 *
 * The same peers can stand on a real loop, at real loopback or unix addresses: testing_peer_on_loop().
 *
 * Nothing here is for threads: a world, and a peer on a loop, belong to one thread. Times are seconds. */
#ifndef LINKPOOL_TESTING_H
#define LINKPOOL_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver.h"
#include "link.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

struct testing;      /* opaque: a world, from testing_new() to testing_free() */
struct testing_peer; /* opaque: from testing_peer_add() or testing_peer_on_loop() to testing_peer_free(), or the world's
                        end */
struct testing_conn; /* opaque: a connection as its peer sees it, from `accepted` to `closed` */

/* ---- the world and its clock ---- */

/**
 * Makes a world. Its clock begins at 1000.
 *
 * @param seed  all that is drawn in this world follows from it: the same seed and the same calls give the same run.
 * @return the world, or NULL with errno ENOMEM.
 */
struct testing *testing_new(uint64_t seed);

/**
 * Frees a world with what is left in it: peers, sockets, timers (none runs) and drivers nobody has freed. Free the
 * pools first: they still call their driver. From inside a callback of this world it marks: the run under way
 * returns after that callback, false, and the memory goes then. NULL: nothing happens.
 */
void testing_free(struct testing *t);

/**
 * Makes a driver on the world's clock; each call makes another one. It is the caller's until it is given to
 * pool_new_on() or driver_free().
 *
 * @return the driver, or NULL with errno ENOMEM.
 */
struct driver *testing_driver(struct testing *t);

/** The system as seen by what is tested: the fake network, the counting allocator, the seed's random bits. It lives as
 *  long as the world. */
const struct linkpool_env *testing_env(struct testing *t);

/** The time on the world's clock. */
double testing_now(const struct testing *t);

/** 64 bits from the seed, for the test's own draws; they are not those the library draws from the env. */
uint64_t testing_random(struct testing *t);

/**
 * Runs `fn(data)` once, when the clock reaches `when`: the user's own timers. It may call anything, pool_free() and
 * testing_at() too.
 *
 * @param when  on testing_now()'s clock; what is past runs in the next turn. Same time: in the order of the calls.
 * @return 0, LINKPOOL_ENOMEM, or LINKPOOL_EINVAL when `when` is not a finite number.
 */
int testing_at(struct testing *t, double when, void (*fn)(void *data), void *data);

/** Takes back every testing_at() of this `fn` and `data` that has not run. Returns how many. Looks at all timers. */
unsigned testing_at_cancel(struct testing *t, void (*fn)(void *data), void *data);

/**
 * One turn. Time goes on to the next event, or stays where it is when a descriptor is ready or a driver asked for
 * `on_later`. Then, as in a turn of a real loop: the network moves and peers' callbacks run; `now` and `turn` of each
 * driver are set; links' descriptors, level-triggered; alarms; testing_at(); and `on_later` of the drivers that had
 * asked.
 *
 * @return true, or false when there is nothing to wait for, or the world was freed.
 */
bool testing_turn(struct testing *t);

/**
 * Runs turns until `seconds` have passed; the clock then stands exactly there.
 *
 * @return true; or false when it gave up: more than a million turns without time going on (testing_stuck() says so
 *         then), or the world was freed by a callback.
 */
bool testing_run_for(struct testing *t, double seconds);

/**
 * Runs turns until `reached(data)` says true: it is asked before the first turn and after each.
 *
 * @param at_most  seconds; INFINITY: as long as there are events.
 * @return true when it was reached; false when the time was up first, nothing was left to wait for, it was stuck, or
 * the world was freed by a callback.
 */
bool testing_run_until(struct testing *t, bool (*reached)(void *data), void *data, double at_most);

/** Whether a run was ever given up because something spun: over a million turns in which time stood still. */
bool testing_stuck(const struct testing *t);

/**
 * The machine sleeps for so long, the peers with it: the clock stands still, and each driver tells its owner with its
 * next turn that time went on (see on_slept of struct driver), if it was a second or more. What died meanwhile is for
 * testing_peer_cut().
 */
void testing_suspend(struct testing *t, double seconds);

/** Lets alarms ring early, as the driver's contract permits: every other one or so, at times drawn from the seed. Off
 * at first. */
void testing_early_alarms(struct testing *t, bool on);

/** Lets descriptors that are ready in the same turn run in an order drawn from the seed. Off at first: in the order in
 *  which they became ready. */
void testing_shuffle(struct testing *t, bool on);

/* ---- what the system does wrong, and what it has seen ---- */

enum testing_call {
    TESTING_SOCKET,
    TESTING_CONNECT, /* with EINTR it goes on by itself, as POSIX has it */
    TESTING_BIND,
    TESTING_SETSOCKOPT,
    TESTING_GETSOCKOPT,
    TESTING_RECVMSG,
    TESTING_SENDMSG,
    TESTING_SHUTDOWN,
    TESTING_CLOSE, /* fails as on Linux: the descriptor is closed nevertheless */
    TESTING_CALLS
};

/**
 * Makes one of the next calls fail; the latest order for a call replaces the one before.
 *
 * @param nth            1: the next one; 0: none any more.
 * @param error          its errno.
 * @param all_from_then  also all that follow.
 */
void testing_fail_call(struct testing *t, enum testing_call call, unsigned nth, int error, bool all_from_then);

/** Makes the `nth` allocation from here on fail (1: the next one; 0: none any more), and all that follow if told so.
 * What grows or shrinks a block is an allocation too. */
void testing_fail_allocation(struct testing *t, unsigned nth, bool all_from_then);

/** At most `n` descriptors at a time: socket() then fails with EMFILE. UINT_MAX, as at first: no limit. */
void testing_limit_descriptors(struct testing *t, unsigned n);

/** Bytes a socket takes from its sender before it says EAGAIN; 65,536 at first, at least 1. For sockets from now on. */
void testing_send_buffer(struct testing *t, size_t bytes);

/** Lets sendmsg() take only a part, drawn from the seed, of what it could take. Off at first. */
void testing_short_writes(struct testing *t, bool on);

/** How often a call was made so far, failed ones included. */
uint64_t testing_calls(const struct testing *t, enum testing_call call);

/** How many allocations were asked for so far, failed ones included. */
uint64_t testing_allocations(const struct testing *t);

/** Fake descriptors that are open now: what is left after a scenario has leaked. */
unsigned testing_open_descriptors(const struct testing *t);

/** Bytes, and blocks, that are allocated through the env now. */
size_t testing_bytes(const struct testing *t);
size_t testing_blocks(const struct testing *t);

/**
 * How often the system was used wrongly; a test expects 0. Counted: any call on a descriptor that is not open,
 * sendmsg() without MSG_NOSIGNAL, a blocking or inheritable socket, a watcher whose descriptor was closed when the loop
 * polled, a watcher started twice, `was` unlike the block's size, a block freed twice.
 */
unsigned testing_misuses(const struct testing *t);

/** The last misuse in a few words; "" when there was none. Static. */
const char *testing_last_misuse(const struct testing *t);

/* ---- peers ---- */

/** What meets a new connection. */
enum testing_behaviour {
    TESTING_ACCEPT,     /* accepts, greets, and answers as it is told to */
    TESTING_REFUSE,     /* ECONNREFUSED */
    TESTING_BLACK_HOLE, /* no answer: ETIMEDOUT after 127 s, as Linux; a unix address: EAGAIN, its backlog is full */
    TESTING_SILENT,     /* accepts and reads; says only what testing_peer_say() tells it to */
    TESTING_ACCEPT_AND_CLOSE, /* accepts, greets, and closes in order */
    TESTING_ACCEPT_AND_RESET, /* accepts, greets, and resets */
    TESTING_UNREACHABLE,      /* connect() itself says ENETUNREACH; a unix address: ENOENT */
    TESTING_NO_HOST           /* EHOSTUNREACH after the connect delay; a unix address: ENOENT */
};

/**
 * Puts a peer at an address of the fake network. An address without one refuses (a unix path: ENOENT).
 *
 * @param address  as the pool takes it: 10.0.0.1:80, [::1]:80, unix:/run/x.sock, unix:@abstract; copied.
 * @return the peer, or NULL with errno EINVAL (not an address), EADDRINUSE (there is one already) or ENOMEM.
 */
struct testing_peer *testing_peer_add(struct testing *t, const char *address, enum testing_behaviour behaviour);

/**
 * Puts the same peer on a real loop, listening at a real address: loopback or unix.
 *
 * All functions on peers work on it, with what a user's program can do with a real kernel: TESTING_BLACK_HOLE is a
 * listening socket whose backlog is filled and never accepted from; TESTING_REFUSE, TESTING_UNREACHABLE and
 * TESTING_NO_HOST stop listening, so that connecting is refused; silence is a descriptor neither read nor written (the
 * kernel still acknowledges what fits its buffers); a connect delay passes between the kernel's accepting and the
 * peer's; attempts are counted as they are accepted, and never the refused ones; testing_peer_backlog() is rounded by
 * the kernel.
 *
 * @param loop     borrowed until testing_peer_free().
 * @param address  port 0 lets the system choose one: testing_peer_address() tells it.
 * @return the peer, or NULL with errno: EINVAL, ENOMEM, or what the system said.
 */
struct testing_peer *testing_peer_on_loop(struct ev_loop *loop, const char *address, enum testing_behaviour behaviour);

/** Ends a peer: its connections are reset, attempts under way and to come are refused; no callback of it runs any more.
 * Also from inside its own callbacks. NULL: nothing happens. A peer on a loop must be freed before its loop. */
void testing_peer_free(struct testing_peer *peer);

/** Its address, in the canonical text, with the real port. The peer's. */
const char *testing_peer_address(const struct testing_peer *peer);

/** Changes what meets connections from now on, attempts under way included; those it has accepted stay as they are.
 *  @return 0; on a loop -1 with errno when it could not listen again at its address. */
int testing_peer_behave(struct testing_peer *peer, enum testing_behaviour behaviour);

/**
 * Gives the answers. Without, and without testing_peer_on(), a peer swallows what it receives.
 *
 * @param serve  gets what came (n at least 1, at most 16,384 at a time, however it was cut on the way), writes at most
 *               `room` (65,536) bytes of answer and returns their number, 0 for none, -1: close the connection. Runs
 * from the loop; it may call what is in testing.h, but for freeing the world. NULL: swallow.
 * @param data   handed to it.
 */
void testing_peer_serve(struct testing_peer *peer,
    ssize_t (*serve)(void *data, const void *in, size_t n, void *out, size_t room), void *data);

/** A ready-made `serve`: says back what it got. */
ssize_t testing_echo(void *data, const void *in, size_t n, void *out, size_t room);

/** A server with more to it: what happens to each connection. All may be NULL; all run from the loop, and may call what
 * is in testing.h, testing_peer_free() too, but for freeing the world. */
struct testing_server {
    size_t size; /* sizeof (struct testing_server) */
    void (*accepted)(void *data, struct testing_conn *conn);
    /** What came, at most 16,384 bytes at a time; `bytes` is borrowed during the call. */
    void (*received)(void *data, struct testing_conn *conn, const void *bytes, size_t n);
    /** The client has said all it will: end of file. NULL: the peer closes, after what it still has to say. */
    void (*ended)(void *data, struct testing_conn *conn);
    /** The connection is over, whoever ended it; `conn` goes with the return. Not of those that testing_free() or
     * testing_peer_free() ends: let the world run a moment after pool_free() if something is to be freed here. */
    void (*closed)(void *data, struct testing_conn *conn);
    void *data;
};

/** Hands connections to a server from now on, those there too. `server` is copied; NULL: back to
 * testing_peer_serve()'s. */
void testing_peer_on(struct testing_peer *peer, const struct testing_server *server);

/** Said to each connection when it is accepted, before any answer. Copied; n 0: nothing. @return 0, or LINKPOOL_ENOMEM.
 */
int testing_peer_greet(struct testing_peer *peer, const void *bytes, size_t n);

/** Says `n` bytes to all its connections now, asked or not, after what is on the way. @return 0, or LINKPOOL_ENOMEM. */
int testing_peer_say(struct testing_peer *peer, const void *bytes, size_t n);

/**
 * Makes a peer slow. Both are 0 at first.
 *
 * @param connect  seconds from connect() to its outcome: accepted, refused, unreachable. A unix connect() is never
 *                 delayed: the accepting is.
 * @param answer   seconds from what came to its answer, and from accepting to the greeting or the end.
 */
void testing_peer_delay(struct testing_peer *peer, double connect, double answer);

/** Spreads the peer's delays: each is multiplied by a draw from [1 - spread, 1 + spread]; 0 to 1, 0 at first. */
void testing_peer_spread(struct testing_peer *peer, double spread);

/** Lets all it says go out `bytes` at a time, one piece each `interval` seconds. 0 bytes, as at first: at once. */
void testing_peer_drip(struct testing_peer *peer, size_t bytes, double interval);

/** Ends each connection after the peer has said `bytes` on it, in the middle of an answer if need be, as
 * testing_peer_cut() does. SIZE_MAX, as at first: never. Connections that have said more by now end at their next word.
 */
void testing_peer_cut_after(struct testing_peer *peer, size_t bytes, enum link_reason how);

/**
 * Ends all its connections now; what was not yet said is lost.
 *
 * @param how  LINK_CLOSED_BY_PEER: in order. LINK_RESET: by a reset. LINK_TIMED_OUT: silence, as when a cable is
 * pulled: nothing comes any more, and what is sent fills the send buffer (ETIMEDOUT after TCP_USER_TIMEOUT if the
 *             client has set it, else after 924.6 s, as Linux). Others: as LINK_RESET.
 */
void testing_peer_cut(struct testing_peer *peer, enum link_reason how);

/** Each connection is read `bytes` more from now on, then no more until the next call: back-pressure. SIZE_MAX, as at
 *  first: no bound. New connections begin with the same allowance. */
void testing_peer_window(struct testing_peer *peer, size_t bytes);

/** At most `n` connections wait to be accepted; 4096 at first. With more, a SYN is dropped and sent again after 1, 2,
 * 4, ... seconds, as Linux does; a unix connect() says EAGAIN. On a loop: for the next time it begins to listen. */
void testing_peer_backlog(struct testing_peer *peer, unsigned n);

/** Accepts (and greets) one at a time, so many a second: a server whose handshakes cost it time. The client's kernel
 * has the connection before that; one whose client has gone still costs its turn. 0, as at first: all at once. */
void testing_peer_accept_rate(struct testing_peer *peer, double per_second);

/** Connections it accepted so far, and those of them that are not over. */
unsigned testing_peer_accepted(const struct testing_peer *peer);
unsigned testing_peer_open(const struct testing_peer *peer);

/** Attempts to connect it has seen, whatever became of them, and the time of the i-th, from 0: gaps of a backoff are
 *  differences of these. NAN past the last. */
unsigned testing_peer_attempts(const struct testing_peer *peer);
double testing_peer_attempt_at(const struct testing_peer *peer, unsigned i);

/** How many bytes it has received, and the last of them (at most 65,536), of all connections as they came. The bytes
 * are the peer's and move with the next turn. */
uint64_t testing_peer_bytes(const struct testing_peer *peer);
const void *testing_peer_received(const struct testing_peer *peer, size_t *n);

/** Its i-th open connection, the oldest being 0; NULL past the last. */
struct testing_conn *testing_peer_conn(const struct testing_peer *peer, unsigned i);

/* ---- one connection of a peer ---- */

/** Says `n` bytes, after what is on the way; the answer delay is not waited. @return 0, LINKPOOL_ENOMEM, or
 *  LINKPOOL_ESTATE: the peer has ended it. */
int testing_conn_send(struct testing_conn *conn, const void *bytes, size_t n);

/** As testing_conn_send(), but not before `delay` seconds from now. */
int testing_conn_send_after(struct testing_conn *conn, double delay, const void *bytes, size_t n);

/** Closes it in order, after what is still to be said. `closed` follows. */
void testing_conn_close(struct testing_conn *conn);

/** Resets it now; what was not yet said is lost. `closed` follows. */
void testing_conn_reset(struct testing_conn *conn);

/** As testing_peer_cut(), for one connection. */
void testing_conn_cut(struct testing_conn *conn, enum link_reason how);

/** Whose it is. */
struct testing_peer *testing_conn_peer(const struct testing_conn *conn);

/** The client's address as the peer sees it: the bound local address, else an ephemeral port of the fake
 * host 10.255.255.1 or fd00::1; "unix:" for a unix client without a name. The connection's. */
const char *testing_conn_client(const struct testing_conn *conn);

/** Bytes that came on it, and bytes said on it. */
uint64_t testing_conn_received(const struct testing_conn *conn);
uint64_t testing_conn_sent(const struct testing_conn *conn);

/** The int the client has set this option of its socket to. @return false when it has not; always on a real loop. */
bool testing_conn_option(const struct testing_conn *conn, int level, int name, int *value);

/** The user's own pointer, NULL at first. */
void testing_conn_set_data(struct testing_conn *conn, void *data);
void *testing_conn_data(const struct testing_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
