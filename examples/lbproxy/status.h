/* status.h - what lbproxy tells of itself, by HTTP: / for people, /metrics for Prometheus, /healthz for balancers. */
#ifndef LBPROXY_STATUS_H
#define LBPROXY_STATUS_H

struct crew;
struct status;

/** Answers clients of `fd`, which is the pages' now, on the control thread's loop. @return NULL: out of memory or
 * descriptors; `fd` is closed then. */
struct status *status_start(struct crew *crew, int fd);

/** A worker has reported, or is over. */
void status_on_report(struct status *status);

/** Ends it and closes what is open. NULL: nothing happens. */
void status_stop(struct status *status);

#endif
