/* rare.h - the named rarities: what a run must have met, so that we know that it went there. */
#ifndef LINKPOOL_TESTS_SIM_RARE_H
#define LINKPOOL_TESTS_SIM_RARE_H

#include <stdint.h>

#define RARITIES(X)                                                                                                    \
    X(CANCEL_IN_HANDSHAKE, "cancel during a handshake")                                                                \
    X(CANCEL_OF_WINNER, "cancel of a winner before it is told")                                                        \
    X(CANCEL_OF_FAILED, "cancel of a failure before it is told")                                                       \
    X(ANSWER_AT_DEADLINE, "answer and time-out in one turn")                                                           \
    X(END_AS_ASKED, "end of file in the turn of an acquire")                                                           \
    X(FREE_IN_CLOSED_IN_DRAIN, "free inside closed inside drain")                                                      \
    X(FREE_IN_DONE, "free inside done")                                                                                \
    X(FREE_IN_BYTES, "free inside readable, writable or message")                                                      \
    X(FREE_IN_DRAINED, "free inside the end of a drain")                                                               \
    X(UPDATE_WHILE_ONLY_CONNECTS, "target updated while its only host connects")                                       \
    X(EVICTED_AND_NAMED, "host evicted and named again in one turn")                                                   \
    X(ROOM_FOR_OLDER, "total full with an older waiter elsewhere, at a return")                                        \
    X(PROBE_WITH_FULL_LINE, "a probe's success with a full line")                                                      \
    X(NO_MEMORY_AT_RETURN, "allocation failing in the return of a lease")                                              \
    X(NO_MEMORY_AT_ASKING, "allocation failing in an acquire")                                                         \
    X(ROOM_BELOW_USE, "room lowered below use")                                                                        \
    X(NO_DESCRIPTORS_MAKE_ROOM, "no descriptors while room is made")                                                   \
    X(WINNER_BACK_IN_LINE, "a winner whose link died before it was told")                                              \
    X(JUMP_WHILE_WAITING, "the clock leaps while leases wait")                                                         \
    X(JUMP_IN_HANDSHAKE, "the clock leaps during a handshake")                                                         \
    X(READY_WITHIN_DONE, "acquire inside done, served at once")                                                        \
    X(RELEASE_IN_CLOSED, "release of one inside closed of another")                                                    \
    X(CANCEL_IN_DONE, "cancel of one inside done of another")                                                          \
    X(DRAIN_WHILE_CONNECTS, "host drained while it connects")                                                          \
    X(REMOVED_WITH_WAITERS, "target removed while leases wait for it")                                                 \
    X(UPDATE_IN_CALLBACK, "target updated inside a callback")                                                          \
    X(RECYCLED_AT_RETURN, "drained or recycled link ended at its return")                                              \
    X(USED_UP, "link used up at its return")                                                                           \
    X(TOO_OLD_AT_RETURN, "link too old at its return")                                                                 \
    X(END_WHILE_RESETTING, "peer ends a link that is being cleaned")                                                   \
    X(RESET_TIMED_OUT, "cleaning timed out")                                                                           \
    X(HANDSHAKE_REFUSED, "handshake refused")                                                                          \
    X(OFFLINE_LEFT, "OFFLINE left by a start")                                                                         \
    X(HALF_OPEN, "a connection half-open under a lease")                                                               \
    X(PEEK_MET_SOMETHING, "a look at a link handed on within its turn ended it")                                       \
    X(GOING_DENIED, "a stream denied by a peer that leaves")                                                           \
    X(FULL_LINE, "max_line met")                                                                                       \
    X(FULL_WAITING, "max_waiting met")                                                                                 \
    X(FULL_HOSTS, "max_hosts met")                                                                                     \
    X(LIMIT_HALVED, "the opening limit halved")                                                                        \
    X(SPREAD_AFTER_LOSS, "an attempt spread after a loss")                                                             \
    X(BOUNDS_BELOW_USE, "bounds set below what is in use")                                                             \
    X(FORGIVEN_PROBE, "failures forgiven while the probe is under way")                                                \
    X(DRAIN_TIMED_OUT, "leases ended as a drain's time was up")                                                        \
    X(THAW, "a clogged peer thawed while leases hold")                                                                 \
    X(IDLE_AS_ASKED, "idle time-out in the turn of an acquire")                                                        \
    X(DROPPED_WITH_WAITERS, "last pin dropped while leases wait")                                                      \
    X(STREAM_LATE, "a late answer of a stream that is over")                                                           \
    X(CALL_AT_DEADLINE, "a call's answer and its time-out in one turn")                                                \
    X(CALL_SWALLOWED, "call given up after sending, its answer swallowed")                                             \
    X(CALL_RETRIED, "call answered after it was tried again")                                                          \
    X(CALL_LOST_NOT_SENT, "call told NOT_SENT as its link was lost")                                                   \
    X(CALL_CANCELLED_UNSENT, "cancel of a call behind others that wait to be sent")                                    \
    X(CALL_BYTES, "max_call_bytes met")                                                                                \
    X(RETRY_REFUSED, "retry refused by the budget")                                                                    \
    X(SEND_REFUSED, "request refused for want of room, and sent later")                                                \
    X(CROWD_DECIDED_WITHIN, "fan-out decided inside another's done")                                                   \
    X(FREE_IN_CROWD, "free inside a fan-out's done")                                                                   \
    X(GOAWAY_BETWEEN, "GOAWAY between two requests of a turn")                                                         \
    X(GOAWAY_TWICE, "a second GOAWAY that lowers the last id")                                                         \
    X(LIMIT_BELOW_USE, "LIMIT lowered below use")                                                                      \
    X(ANSWER_TWICE, "a request answered twice")                                                                        \
    X(HEARD_AS_MISSED, "probe answered in the turn it is missed")                                                      \
    X(HEARD_AGAIN, "a suspect link heard of again")                                                                    \
    X(SUSPECT_LENT, "a suspect link lent, since no other could serve")                                                 \
    X(HEARTBEAT_LOST, "a silent link given up")                                                                        \
    X(LINK_UNANSWERED, "a link ended after calls in a row without answers")

enum rarity {
#define X(name, text) RARE_##name,
    RARITIES(X)
#undef X
    N_RARITIES
};

struct rare {
    uint32_t n[N_RARITIES]; /* in this game, or in a run */
};

extern const char *const rare__text[N_RARITIES];

/** Prints the table. @return how many were met less than `least` times. */
unsigned rare__print(const struct rare *rare, uint32_t least);

#endif
