/* framed_writer.h - frames in, bytes out: what was accepted and is not written yet, in order. No I/O.
 *
 * A request gets its number when its first byte goes, so that one taken back before that leaves no gap. Only the first
 * frame in line can have gone in part. */
#ifndef LINKPOOL_LINK_FRAMED_WRITER_H
#define LINKPOOL_LINK_FRAMED_WRITER_H

#include <stdbool.h>
#include <sys/uio.h>

#include "link/blocks.h"
#include "link/framed_wire.h"
#include "linkpool/driver.h"

/** A frame in line, or the rest of one. */
struct framed_out {
    struct framed_out *prev, *next;
    void *owner;              /* whose request it is, until some of it has gone: then the owner may be gone too */
    struct framed_pack *pack; /* where it lies, with others that are small; NULL: alone, its bytes behind it */
    unsigned char *bytes;
    uint32_t size, gone;
    uint8_t type;
    bool begun; /* some of it has gone */
};

struct framed_writer {
    const struct linkpool_env *env;
    struct link_blocks *blocks; /* where packs come from */
    struct framed_out *first;
    struct framed_pack *pack; /* the one that is being filled; NULL: none has anything in line */
    size_t waiting;           /* bytes in line */
    uint32_t last_id;         /* the last number given to a request; 0: none yet */
    unsigned n_pongs;         /* PONGs in line */
};

/** A frame to be sent. */
struct framed_message {
    uint8_t type;
    void *owner; /* REQUEST: whose it is */
    uint32_t id; /* of what is about a request; a REQUEST gets its own, */
    const void *payload;
    size_t n;
};

/** Puts a copy of a frame in line. @return it, or NULL: no memory. */
struct framed_out *framed__put(struct framed_writer *writer, const struct framed_message *message);

/** Nothing is in line: the header and the payload as they are, to be written at once. framed__sent() follows.
 * @return the number of parts. */
int framed__direct(struct framed_writer *writer, struct framed_message *message, unsigned char head[FRAMED_HEAD],
    struct iovec parts[2]);
/** So many bytes, above 0, of that have gone: the rest is put in line. @return 0, or LINKPOOL_ENOMEM: it is lost. */
int framed__sent(struct framed_writer *writer, const struct framed_message *message,
    const unsigned char head[FRAMED_HEAD], size_t n);

/** What is to be written next; frames that lie side by side are one part. @return the number of parts; 0: nothing is in
 * line. */
int framed__gather(struct framed_writer *writer, struct iovec *parts, int max);
/** So many bytes of that have gone. `begun` is told of each request whose first byte was among them. */
void framed__took(
    struct framed_writer *writer, size_t n, void (*begun)(void *data, void *owner, uint32_t id), void *data);

/** Takes back a frame of which nothing has gone. */
void framed__take_back(struct framed_writer *writer, struct framed_out *out);

/** Takes back all of which nothing has gone. */
void framed__drop_unbegun(struct framed_writer *writer);

void framed__writer_free(struct framed_writer *writer);

#endif
