/* cases.h - what the tests of the cases share: a world that is watched, lists of addresses, two protocols.
 *
 * The cases (CASES in ids.txt) are scenarios in which others' pools have failed, each played on ours. Each test runs in
 * a process of its own, so what is watched is kept here once. */
#ifndef LINKPOOL_TESTS_CASES_H
#define LINKPOOL_TESTS_CASES_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define A "10.0.0.1:80"
#define B "10.0.0.2:80"
#define C "10.0.0.3:80"
#define D "10.0.0.4:80"

extern const char *const cases_abc[4]; /* A to D */

/* ---- the world ---- */

/** fake_world_begin(), and what targets and links do is written down. */
void cases_begin(struct fake_world *world);
/** The same, opened with the defaults. */
void cases_open(struct fake_world *world);
/** Failures are waited for without jitter: base, times factor each time, at most cap; READY is proof at once, and
 * losses cost nothing. Before fake_world_open(). */
void cases_gaps(struct fake_world *world, double base, double factor, double cap);

/** A world whose one peer, at A, echoes, and whose hosts have so many links at most; gaps of 0.2 s, doubling, to 10. */
struct testing_peer *cases_peer(struct fake_world *world, unsigned max_links);

/** States that targets took, in words with a blank between; and those that links took. Until the next call. */
const char *cases_states(void);
const char *cases_links(void);
/** How often a link came to this state. */
unsigned cases_seen(enum link_state state);
/** Forgets what was written down. */
void cases_forget(void);

/* ---- targets ---- */

/** The target "db" of the first n addresses. */
struct pool_target *cases_target(struct fake_world *world, const struct pool_picker *picker, size_t n);
/** One whose list is not known yet. */
struct pool_target *cases_unknown(struct fake_world *world, const char *name);
/** A new list; n 0: an empty one. */
void cases_update(struct pool_target *target, const char *const *addresses, size_t n);
#define CASES_LIST(target, ...)                                                                                        \
    cases_update((target), (const char *const[]){__VA_ARGS__},                                                         \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* ---- users ---- */

/** One whole use by one who comes anew: hold, send, read, give back. */
void cases_use(struct fake_world *world, const char *text);
/** Whether such a use succeeds within a second, without asserting that it does. */
bool cases_try(struct fake_world *world, const char *text);
/** Asks for n channels, one a user. */
void cases_ask(struct fake_world *world, struct fake_user *users, size_t n, const char *text);
/** How many of them have this status. */
unsigned cases_count(const struct fake_user *users, size_t n, int status);
/** Asks as one that waits for ready, for as long as it takes. */
int cases_wait(struct fake_world *world, struct fake_user *user, const char *text);
/** Reads a byte that must be there. */
char cases_read(struct fake_user *user);
/** The id of the link whose channel it holds. */
uint64_t cases_link_id(const struct fake_user *user);

/* ---- protocols ---- */

/** Waits for the peer's greeting G, then says H and hears H. */
extern const struct protocol cases_greeted;

/** Shared: frames of four bytes, channel and letter and value, that an echoing peer says back. On channel 0 the peer
 * says G (leaving; the value is the last channel it takes), N (room for so many) or B (broken: it would not have us).
 */
extern const struct protocol cases_shared;
/** Says such a frame on all connections of the peer. */
void cases_say(struct testing_peer *peer, char letter, unsigned char value);

#endif
