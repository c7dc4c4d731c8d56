/* framed.h - a protocol of many calls on one link: requests and answers in frames, matched by number.
 *
 *     struct framed_options options;
 *     framed_options_init(&options);
 *     options.token = "secret";
 *     options.token_size = 6;
 *     static struct protocol protocol;         outlives the links, as do the options
 *     protocol = framed_protocol(&options);
 *     host_options.protocol = &protocol;
 *
 * channel_send() sends one request; its answer comes as one message (struct channel_events), however large; or, to who
 * listens for `part`, in pieces as it is read, for which nothing is allocated. The peer's ERROR comes as an error with
 * its code and words, at most 1024 bytes, not ended by a NUL. One request a channel is under way at a time; a link
 * carries as many channels as its peer has said. linkpool-framed(7) has the wire form byte for byte. */
#ifndef LINKPOOL_FRAMED_H
#define LINKPOOL_FRAMED_H

#include <stddef.h>
#include <stdint.h>

#include "link.h"
#include "protocol.h"
#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What an ERROR, or a peer that leaves, gives as its cause. From FRAMED_FIRST_OWN on they are the user's own. */
enum framed_code {
    FRAMED_NO_ERROR = 0,       /* of a peer that leaves: nothing is wrong */
    FRAMED_NOT_PROCESSED = 1,  /* nothing was done with the request: the lease ends as safe to repeat */
    FRAMED_CANCELLED = 2,      /* it was cancelled */
    FRAMED_TOO_LARGE = 3,      /* the answer would be larger than the link's largest payload */
    FRAMED_MALFORMED = 4,      /* what we said made no sense to the peer */
    FRAMED_INTERNAL = 5,       /* the peer is at fault */
    FRAMED_DENIED = 6,         /* the token is not welcome */
    FRAMED_TOO_MANY_PINGS = 7, /* a peer that leaves: they come too often */
    FRAMED_FIRST_OWN = 256
};

/** How a framed link behaves. From framed_options_init(). */
struct framed_options {
    size_t size;
    const void *token;    /* borrowed as the options are; said to the peer in the handshake; default none */
    size_t token_size;    /* bytes, at most 4096; default 0 */
    uint32_t max_payload; /* bytes: the largest payload taken, which the peer is told; 1 KiB to 64 MiB; default 1 MiB */
    size_t max_queue;     /* bytes accepted on a link and not yet written, 4 KiB to 1 GiB; default 256 KiB. One request
                             that is larger goes as well, when nothing else waits */
    size_t max_channel_queue; /* the same of one channel, 1 KiB to 1 GiB; default 64 KiB */
};
void framed_options_init_sized(struct framed_options *options, size_t size);
#define framed_options_init(o)                                                                                         \
    framed_options_init_sized(                                                                                         \
        (o), sizeof *(o)) /* a plain function would write a newer, longer struct over an older caller's */

/** Says whether options can be used; `text` gets the option, its value and the range. @return 0, or LINKPOOL_EINVAL. */
int framed_options_check(const struct framed_options *options, char *text, size_t n);

/**
 * Makes a protocol with these options. In a key it is compared by its pointer, as any protocol.
 *
 * channel_send() then answers 0, or:
 * LINKPOOL_EAGAIN: too much waits to be written; `writable` follows, for those who were refused first before others;
 * LINKPOOL_ESTATE: the request before has no answer yet, or the peer is leaving and takes no more;
 * LINKPOOL_EINVAL: larger than the peer takes; LINKPOOL_ENOMEM: nothing was sent; LINKPOOL_ELOST.
 *
 * @param options  borrowed, with the token, until the last link is gone; NULL: the defaults. Options that
 *                 framed_options_check() refuses make every attempt fail, with its text.
 */
struct protocol framed_protocol(const struct framed_options *options);

/** The protocol with default options. */
extern const struct protocol protocol_framed;

#ifdef __cplusplus
}
#endif
#endif
