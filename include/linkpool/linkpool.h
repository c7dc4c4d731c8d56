/* linkpool.h - all of linkpool. */
#ifndef LINKPOOL_LINKPOOL_H
#define LINKPOOL_LINKPOOL_H

/** The version of these headers. */
#define LINKPOOL_VERSION "0.1.0"

#include "backoff.h"
#include "call.h"
#include "driver.h"
#include "error.h"
#include "framed.h"
#include "heartbeat.h"
#include "link.h"
#include "pool.h"
#include "protocol.h"
#include "testing.h"
#include "transport.h"

#endif
