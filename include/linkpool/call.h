/* call.h - one request and its answer over shared links: asked for, sent, matched and given back in one call; and many
 * of them at once. */
#ifndef LINKPOOL_CALL_H
#define LINKPOOL_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "pool.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pool_call_flags {
    POOL_CALL_WAIT_FOR_READY = POOL_WAIT_FOR_READY, /* as of a lease */
    POOL_CALL_SAFE_TO_REPEAT = 256                  /* may be sent twice: it is tried again whatever became of it */
};

/**
 * A request that waits for its answer. All zero before its first use; the caller's storage, at one place from
 * pool_call() until `done` or pool_call_cancel(); then, inside `done` too, it may be used again, the out members being
 * written anew.
 *
 * The protocol of its hosts is a shared one whose messages are whole answers (`framed`).
 */
struct pool_call {
    const char *to;                       /* in: an address or a target's name; read during pool_call() only */
    struct pool_host *host;               /* in: instead of `to`; of this pool */
    struct pool_target *target;           /* in: instead of both */
    const void *request;                  /* in: borrowed until the outcome */
    size_t request_size;                  /* in */
    void (*done)(struct pool_call *call); /* in: told the outcome, once, from the loop or from pool_free() */
    /** In: NULL: the answer comes whole. Else told each piece of it as it comes, in order, borrowed during the call;
     * then `done`, without `answer`. Once a piece was told it is not tried again. It may call anything. What the
     * protocol gives whole comes in `done` all the same. */
    void (*part)(struct pool_call *call, const void *bytes, size_t n);
    void *data;              /* in: the caller's; never read */
    double timeout;          /* in: seconds from pool_call() to the answer, any above 0 up to ten years; 0: the pool's
                                wait_timeout; INFINITY: none */
    unsigned flags;          /* in: enum pool_call_flags */
    unsigned retries;        /* in: it is tried so many times more at most; 0: once is all */
    uint64_t hash;           /* in: for pickers that hash */
    const void *answer;      /* out: borrowed while `done` runs, unless that ends its link (pool_free());
                                NULL: there is none; with LINKPOOL_EPEER the peer's words, as they came */
    size_t answer_size;      /* out; of one in pieces: the bytes that were told */
    int status;              /* out: 0, POOL_PENDING, or an error */
    uint32_t code;           /* out: with LINKPOOL_EPEER what the peer says went wrong, else 0 */
    int system_errno;        /* out: of the failure */
    enum link_reason reason; /* out: of the failure */
    enum pool_stage stage;   /* out: what ate the deadline; POOL_STAGE_NONE: the peer, or another failure came first */
    enum pool_bound bound;   /* out: which bound was met */
    enum pool_fate fate;     /* out: of the request, where there is no answer; over all attempts the worst */
    unsigned attempts;       /* out: how often it got a channel */
    struct pool_host *last_host; /* out: whose channel it had last; NULL: none's */
    struct pool_lease lease;     /* the library's */
    char words[64]; /* out: what the peer, or its link, said of the failure, cut to fit; "": nothing, or it had
                       no channel: pool_host_explain() has the words of a refused login */
    void *lib[14];  /* the library's */
};

/**
 * Sends a request, as soon as there is a channel, and tells its answer.
 *
 * A peer that answers with an error of its own has answered: LINKPOOL_EPEER, with its code and words, and it is not
 * tried again; of a group it is a call that failed.
 *
 * On each link requests go out in the order of the calls. A call over a lost link is told so at once, with its fate. It
 * is tried again where `retries` allows, on another host where there is one, if it was not sent, if the peer said that
 * it did nothing with it, or if it is safe to repeat. Over the pool, retries are at most a fifth of the calls (with at
 * most 100 saved up), or three a second where that is more, so that they do not multiply an outage.
 *
 * @return POOL_PENDING, or an error, after which nothing is kept and `done` never runs: those of pool_acquire();
 *         LINKPOOL_EFULL with POOL_BOUND_CALL_BYTES; LINKPOOL_EOPTION: the protocol carries no messages;
 *         LINKPOOL_ESTATE: it is under way already, and untouched; LINKPOOL_EINVAL: no `done`, not exactly one of
 *         `to`, `host` and `target`, one of another pool, no bytes of a request that has some, unknown flags, or a
 *         timeout out of range; and what the protocol says of a request that it does not take (of `framed` see
 *         framed_protocol()), which may come as the outcome as well.
 */
int pool_call(struct pool *pool, struct pool_call *call);

/** Gives it up: `done` will not run, and an answer that still comes is swallowed; `fate` says whether it may have been
 * sent. @return 0, or LINKPOOL_ESTATE: it was not under way. */
int pool_call_cancel(struct pool_call *call);

/**
 * Says in words where a call is, or why it failed: whom it waits for and how each host is, to whom it was sent and how
 * long ago, the time left, what became of its request, and what the peer said. Of a target with many hosts the first
 * are told of, and how many more there are. At any time while it is under way, in `done` and after it.
 *
 * @return as snprintf(): the length of the whole text.
 */
int pool_call_explain(const struct pool_call *call, char *text, size_t n);

enum pool_fanout_flags {
    POOL_FANOUT_HEAR_ALL =
        1 /* told when every call has answered or failed, or at its deadline, however many are wanted */
};

/** Many calls as one. As struct pool_call: all zero at first, the caller's, at one place until `done` or
 * pool_fanout_cancel(); and so are its calls. */
struct pool_fanout {
    struct pool_call *calls; /* in: an array; each call's own `done` may be NULL, and runs before the group's */
    size_t n;                /* in: from 1 */
    size_t wanted;           /* in: enough answers; 0: all */
    unsigned flags;          /* in: enum pool_fanout_flags */
    double timeout;          /* in: seconds until it is told what there is, as of a call; 0: the pool's wait_timeout;
                                INFINITY: none */
    void (*done)(struct pool_fanout *group); /* in: told once, from the loop or from pool_free() */
    void *data;                              /* in: the caller's; never read */
    size_t answered, failed; /* out: each call's status says which, and why; one that you cancel has failed; given up
                                with the group: neither */
    int status;   /* out: 0: enough have answered, by the deadline too; LINKPOOL_ETIMEDOUT; LINKPOOL_ELOST: too many
                     failed, or were cancelled; POOL_PENDING */
    void *lib[8]; /* the library's */
};

/**
 * Starts all calls of a group. It is told when `wanted` have answered, when so many cannot any more, or at the
 * deadline; calls still under way then are given up without a word of their own, with status LINKPOOL_ETIMEDOUT at the
 * deadline, else LINKPOOL_ECANCELLED. With POOL_FANOUT_HEAR_ALL nothing is given up before the deadline: who wants
 * whatever there is by then has the answers of those that are up beside the reasons of the others. Nothing is told
 * before this returns: a call that cannot be started has failed, with its own status, and those that come after too
 * many such are not started.
 *
 * @return POOL_PENDING, or an error after which nothing is under way: LINKPOOL_EINVAL, LINKPOOL_ESTATE (the group, or a
 *         call of it, is under way), LINKPOOL_ECLOSED, LINKPOOL_ENOMEM.
 */
int pool_fanout(struct pool *pool, struct pool_fanout *group);

/** Gives all of it up: nothing is told any more, also from inside the last call's own `done`. @return 0, or
 * LINKPOOL_ESTATE: it was not under way. */
int pool_fanout_cancel(struct pool_fanout *group);

#ifdef __cplusplus
}
#endif
#endif
