/* fanout_core.h - one line asked of many backends at once, and their answers merged.
 *
 * It runs on a pool alone: no loop, no socket and no timer of its own, so that a test can run it on testing.h's
 * virtual time. The caller's timer says when the time is up (fanout_deadline).
 *
 * A backend is asked by a line and answers with a line, as redis does with inline commands. */
#ifndef EXAMPLES_FANOUT_CORE_H
#define EXAMPLES_FANOUT_CORE_H

#include <stdbool.h>
#include <stddef.h>

struct pool;
struct fanout;          /* opaque: the backends; from fanout_new() to fanout_free() */
struct fanout_question; /* opaque: from fanout_ask() to fanout_end() */

enum {
    FANOUT_MAX_BACKENDS = 64,
    FANOUT_MAX_QUESTION = 1024, /* bytes, without the line's end */
    FANOUT_MAX_ANSWER = 4096    /* the same; a longer one counts as missing */
};

struct fanout_answer {
    const char *backend; /* its address, as given */
    const char *text;    /* without the line's end; NULL: missing */
    const char *why;     /* missing: why */
    bool repeated;       /* it was asked twice: its first link had died unseen */
};

/**
 * Makes a fan-out.
 *
 * @param pool      borrowed until fanout_free().
 * @param backends  n addresses, copied.
 * @return it, or NULL with errno: EINVAL (an address, or n is not 1 to FANOUT_MAX_BACKENDS), or as pool_host().
 */
struct fanout *fanout_new(struct pool *pool, const char *const *backends, unsigned n);

/** Frees it; no question may be left. Before its pool. NULL: nothing happens. */
void fanout_free(struct fanout *fanout);

/**
 * Asks all backends.
 *
 * @param line  n bytes without a line's end, at most FANOUT_MAX_QUESTION; copied.
 * @param done  told once, from the loop, when every backend has answered or is known to be missing; not when
 *              fanout_is_complete() after this call says so already, nor after fanout_deadline() or fanout_end().
 * @return the question, the caller's until fanout_end(); or NULL with errno EINVAL or ENOMEM.
 */
struct fanout_question *fanout_ask(struct fanout *fanout, const char *line, size_t n,
    void (*done)(struct fanout_question *question, void *data), void *data);

/** Whether nothing is awaited any more. */
bool fanout_is_complete(const struct fanout_question *question);

/** The time is up: who has not answered is missing, and the question is complete. */
void fanout_deadline(struct fanout_question *question);

/** The i-th backend's answer; before the question is complete, "not yet" is a reason too. Borrowed until fanout_end().
 */
struct fanout_answer fanout_answer(const struct fanout_question *question, unsigned i);

/** Writes the answers, a line each, those missing with the reason, and last a line "2 of 3". Returns as snprintf(). */
int fanout_merge(const struct fanout_question *question, char *text, size_t n);

/** Ends a question, complete or not, and frees it. NULL: nothing happens. */
void fanout_end(struct fanout_question *question);

#endif
