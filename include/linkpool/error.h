/* error.h - the one set of errors, each saying what to do next. */
#ifndef LINKPOOL_ERROR_H
#define LINKPOOL_ERROR_H

#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a function answers when it could not do what was asked; all are below 0.
 *
 * A code says what to do next, so there are few; the reason, errno and the transport's text are kept
 * beside it (in the lease, by link_last_reason()).
 */
enum linkpool_error {
    LINKPOOL_EINVAL = -1,       /* an argument is wrong: mend the call */
    LINKPOOL_ESTATE = -2,       /* not now: the object is over, or not in that state; nothing changed */
    LINKPOOL_ENOMEM = -3,       /* out of memory; nothing is kept */
    LINKPOOL_EFULL = -4,        /* a bound is reached: shed load; lease->bound says which */
    LINKPOOL_ETIMEDOUT = -5,    /* the deadline passed; lease->stage says what ate it */
    LINKPOOL_EUNAVAILABLE = -6, /* every host is down: try elsewhere; lease->reason and lease->system_errno say why */
    LINKPOOL_ECLOSED = -7,      /* the pool, target or host is draining or gone */
    LINKPOOL_EADDRESS = -8,     /* neither an address nor a target's name; link_address_check() says what is wrong */
    LINKPOOL_EAGAIN = -9,       /* nothing to read, or no room to write: you will be called */
    LINKPOOL_ELOST = -10,       /* the link ended under the lease */
    LINKPOOL_EOPTION = -11,     /* this transport or protocol cannot do that */
    LINKPOOL_ECANCELLED = -12,  /* given up: by its owner, or since enough others have answered */
    LINKPOOL_EPEER = -13        /* the peer answered with an error of its own; call->code says which */
};

/**
 * Says an error in a few words.
 *
 * @param error  one of enum linkpool_error, or 0.
 * @return a static text, never NULL; "unknown error" for what is neither.
 */
const char *linkpool_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
