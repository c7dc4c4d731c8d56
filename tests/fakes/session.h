/* session.h - a protocol of one holder a link, for an echoing peer: it says H and hears H before it is ready, and R
 * between two holders. */
#ifndef LINKPOOL_TESTS_FAKES_SESSION_H
#define LINKPOOL_TESTS_FAKES_SESSION_H

#include "linkpool/protocol.h"

extern const struct protocol fake_session;

#endif
