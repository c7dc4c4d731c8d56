/* linkpool.h - all of linkpool. */
#ifndef LINKPOOL_LINKPOOL_H
#define LINKPOOL_LINKPOOL_H

#include "backoff.h"
#include "driver.h"
#include "error.h"
#include "link.h"
#include "pool.h"
#include "protocol.h"
#include "testing.h"
#include "transport.h"

#endif
