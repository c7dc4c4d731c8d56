/* backoff.h - what the rooms above need of backoff/ beside the public face. */
#ifndef LINKPOOL_BACKOFF_BACKOFF_H
#define LINKPOOL_BACKOFF_BACKOFF_H

#include "linkpool/backoff.h"

/** The policy, its members beyond an older caller's size filled with the defaults. */
struct backoff_policy backoff__whole(const struct backoff_policy *policy);

#endif
