/* shared.h - a small protocol of several channels a link, for an echoing peer: four bytes a frame, channel and letter.
 */
#ifndef LINKPOOL_TESTS_FAKES_SHARED_H
#define LINKPOOL_TESTS_FAKES_SHARED_H

#include "linkpool/protocol.h"

/** What the protocol does on purpose; a protocol's `config` points at one, NULL: none of it. */
struct fake_shared_ways {
    bool speaks_at_open, speaks_at_close; /* a frame of its own then: a broken connection is met within the hook */
    bool speaks_at_leave;
    bool refuses; /* open() says no */
};

/** Three channels a link. Copy it for other numbers or ways. A message is one byte; what comes back is delivered, as
 * one piece to who takes pieces, a ! as an error. */
extern const struct protocol fake_shared;

#endif
