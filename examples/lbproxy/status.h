/* status.h - the status page: figures of all workers as plain text, to whoever connects. */
#ifndef LBPROXY_STATUS_H
#define LBPROXY_STATUS_H

struct crew;
struct status;

/** Answers connections to `fd`, which is the page's now, on the control thread's loop. NULL: out of memory. */
struct status *status_start(struct crew *crew, int fd);

/** A worker has reported, or is over. */
void status_on_report(struct status *status);

/** Ends it and closes what is open. NULL: nothing happens. */
void status_stop(struct status *status);

#endif
