/* protocol.h - what gives a link's bytes a meaning, for those who write one: handshake, frames to channels, ping,
 * leaving. */
#ifndef LINKPOOL_PROTOCOL_H
#define LINKPOOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "link.h"
#include "symbols.h"
#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

enum protocol_flags {
    PROTOCOL_SHARED = 1, /* a link carries several channels at once; else one holder has all of it */
    PROTOCOL_ONE_WAY = 2 /* exclusive: a holder that sent last leaves the link clean (logs, metrics) */
};

/** A link as its protocol sees it. */
struct protocol_link {
    const struct protocol *protocol;
    struct link *link; /* the library's */
    void *state;       /* link_size bytes, zeroed before each attempt; NULL when the size is 0 */
};

/** A channel of a shared link as its protocol sees it. */
struct protocol_channel {
    struct channel *channel; /* the library's */
    void *state;             /* channel_size bytes, zeroed before each lease */
};

/** What `released` may answer. */
enum protocol_released {
    PROTOCOL_CLEAN = 0,
    PROTOCOL_RESETTING = 1 /* being cleaned: protocol_ready() follows */,
    PROTOCOL_UNCLEAN = -1
};

/**
 * A protocol. Static, or outlives every link made with it; in a key it is compared by its pointer, so other
 * credentials are another protocol object. Any hook may be NULL: then its line says what holds. Hooks that return
 * int return 0, or what a call-up answered them. Hooks use the functions of this header only, for their own link.
 *
 * Exclusive: `input` runs from start() to READY and while RESETTING; a READY link's bytes are its holder's.
 * Shared: `input` runs for all that comes.
 */
struct protocol {
    size_t size; /* sizeof (struct protocol) */
    const char *name;
    unsigned flags;
    unsigned max_channels; /* shared: what a link carries until the peer has said, and what an attempt is expected to
                              serve; 0 is 1 */
    size_t link_size, channel_size;
    const void *config; /* the protocol's own; credentials live here */
    /** The transport is up: introduce yourself, or call protocol_ready(). NULL: ready at once. */
    int (*start)(struct protocol_link *pl);
    /** Something came, or there is room again; without events: the end of a turn, see protocol_later(). NULL: nothing
     * is read. */
    int (*input)(struct protocol_link *pl, unsigned events);
    /** Bytes came while nobody held the link: 1 taken, 0 not mine (the link closes). NULL: 0, and of a shared one
     * input() runs. */
    int (*idle_input)(struct protocol_link *pl);
    /** Exclusive: given back. See enum protocol_released. NULL: clean. */
    int (*released)(struct protocol_link *pl);
    /** Shared: a channel was leased. Non-zero refuses it, and the link takes no more until room is set anew. NULL:
     * fine. */
    int (*open)(struct protocol_link *pl, struct protocol_channel *pc);
    /** Shared: channel_send(): 0, or LINKPOOL_EAGAIN: protocol_writable() follows. NULL: LINKPOOL_EOPTION. */
    int (*send)(struct protocol_link *pl, struct protocol_channel *pc, const void *bytes, size_t n);
    /** Shared: a channel is over, told once for each open() unless end() comes first; cancelled: its holder has given
     * it up. An answer that is due may still come, cancelled or given back for reuse, and is to be swallowed. NULL:
     * nothing. */
    void (*close)(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled);
    /** Shared: nothing of what was sent on it has gone to the peer, and nothing will once its link is over. NULL: what
     * was accepted is taken to have gone. */
    bool (*unsent)(const struct protocol_channel *pc);
    /** Shared: some of an answer to it has come that was not delivered yet. NULL: what has come is what was delivered.
     */
    bool (*answering)(const struct protocol_channel *pc);
    /** Ask for a sign of life; protocol_pong() follows. Below 0: it was not asked, or the one before has still to go
     * and stands for both (LINKPOOL_EAGAIN); a sign of life is awaited all the same. NULL: it has none, and no
     * heartbeat. Of an exclusive link only while nobody holds it, so that the answer comes to idle_input(); until
     * protocol_pong() it is not lent. Of a protocol that never calls that, other bytes are the answer, once the probe's
     * time is up. */
    int (*ping)(struct protocol_link *pl);
    /** The link is going to be closed in order: say so, if there is something to say. NULL: nothing. */
    void (*leave)(struct protocol_link *pl);
    /** The attempt is over: free what hangs on the state. Called once for each start(). NULL: nothing. */
    void (*end)(struct protocol_link *pl);
};

/** Bytes as they are, one holder at a time, ready at once. With a handshake: copy it, set start, input and link_size,
 * use the copy. */
extern const struct protocol protocol_raw;

/** Reads. @return bytes, above 0; LINKPOOL_EAGAIN; or LINKPOOL_ELOST: end of file or a fault, and the link has ended:
 * return at once. */
ssize_t protocol_read(struct protocol_link *pl, void *bytes, size_t n);
/** Writes. @return bytes taken, perhaps fewer than given (`input` is called with LINKPOOL_WRITE when there is room),
 * LINKPOOL_EAGAIN, or LINKPOOL_ELOST as above. */
ssize_t protocol_write(struct protocol_link *pl, const struct iovec *parts, int n);

/** Shared: lets `input` run, once and without events, when all that this turn of the loop brought has been seen to:
 * what was sent meanwhile can leave in one write. For hooks, those that run inside the user's own calls too. @return 0,
 * or LINKPOOL_EOPTION: not shared. */
int protocol_later(struct protocol_link *pl);

/* Each call-up returns 0, or LINKPOOL_ELOST: the link is gone (a callback freed the pool, or pl is NULL, the attempt
 * being over): return at once, touch nothing. */

/** The handshake is done, or the link is clean again. */
int protocol_ready(struct protocol_link *pl);
/** The connection is no use: it ends. `text` is copied; may be NULL. Always LINKPOOL_ELOST. */
int protocol_fail(struct protocol_link *pl, enum link_reason reason, const char *text);
/** Shared: the link can carry so many channels from now on; may be fewer than are in use, and 0. Also before
 * protocol_ready(). */
int protocol_set_room(struct protocol_link *pl, unsigned channels);
/**
 * The link is led away: it takes no new channels, those out may finish within drain_timeout, and then it ends. May be
 * called again, to deny more of them, or to give a cause.
 *
 * @param processed  those that it denies end now, as safe to repeat; it may be asked more than once of each, and of
 *                   those that have sent nothing; NULL: it denies none.
 * @param reason     LINK_NO_REASON or LINK_CLOSED_BY_PEER: the peer leaves, and nothing is wrong; but of a link that
 *                   is not stable yet, has answered nothing and keeps nobody it is LINK_SENT_AWAY. That, or
 *                   another fault: that counts as a failure of the host's from now on; how the link ends then says
 *                   nothing more. LINK_USED_UP, or another end of ours: we leave.
 * @param text       the peer's words on a fault; copied; may be NULL.
 */
int protocol_going(struct protocol_link *pl, bool (*processed)(const struct protocol_channel *pc),
    enum link_reason reason, const char *text);
/** The answer to one ping() came: its round trip is taken, and an exclusive link may be lent again. (That something
 * came is known without it.) */
int protocol_pong(struct protocol_link *pl);
/** The peer has complained of too many probes: this host is asked half as often from now on. Complaints of links that
 * were not asked since the last one count as one. */
int protocol_ping_less(struct protocol_link *pl);
/** A message for a channel; its holder may release it, or free the pool, meanwhile. From input(), idle_input() or
 * outside code; in the hooks open, close, released and leave, which run inside the user's own calls, it answers
 * LINKPOOL_ESTATE and the holder is not called. */
int protocol_deliver(struct protocol_channel *pc, const void *bytes, size_t n);
/** The peer's error for a channel, instead of a message: a code of the protocol's, and words. As protocol_deliver(). */
int protocol_deliver_error(struct protocol_channel *pc, uint32_t code, const void *words, size_t n);
/** A piece of a message, for a holder that takes pieces; `last`: there are no more of it; n may be 0. As
 * protocol_deliver(); of one that takes none it is swallowed. */
int protocol_deliver_part(struct protocol_channel *pc, const void *bytes, size_t n, bool last);
/** Does the holder take pieces just now? If not, a message is to be gathered. */
bool protocol_takes_parts(const struct protocol_channel *pc);
/** A channel that was refused room has it again. As protocol_deliver(). */
int protocol_writable(struct protocol_channel *pc);
/** The peer ended this channel: its lease is over. `safe_to_repeat`: it did nothing with what was sent. */
int protocol_end(struct protocol_channel *pc, enum link_reason reason, bool safe_to_repeat);

/** One attempt, to be kept by outside code (transport.h); the link of one that is over is NULL, counted as stale. */
struct link_attempt protocol_attempt(struct protocol_link *pl);
struct protocol_link *protocol_attempt_link(struct link_attempt attempt);
/** Walks the channels in use; NULL begins, NULL ends. None may open or close meanwhile. */
struct protocol_channel *protocol_next_channel(struct protocol_link *pl, const struct protocol_channel *after);
const struct linkpool_env *protocol_env(const struct protocol_link *pl);

#ifdef __cplusplus
}
#endif
#endif
