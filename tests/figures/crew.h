/* crew.h - a crew whose workers have no thread: a test plays them, by writing their reports. */
#ifndef FIGURES_CREW_H
#define FIGURES_CREW_H

#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/report.h"
#include "examples/lbproxy/worker.h"

enum {
    CREW_THREADS = 2,
    CREW_BACKENDS = 2
};

extern struct crew crew;
extern struct options crew_options; /* backends are 10.0.0.1:80 and 10.0.0.2:80 */

/** Makes `crew` on a loop of its own: workers that have reported nothing yet. */
void crew_make(void);

/** Frees all of it. */
void crew_clear(void);

/** A worker's report, for a test to fill in; its backends are up. */
struct report *crew_report(unsigned worker);

#endif
