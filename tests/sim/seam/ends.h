/* ends.h - the far ends of real descriptors, and the env that leads to them.
 *
 * A "unix:" address is a real listener. Any other is a place in a table: socket() makes a socket pair, and what a pair
 * cannot do is played, as the testing kit plays TCP. While it connects its sending side is full, so that the kernel
 * finds it writable only when the far end has decided; what SO_ERROR says then is the table's. A reset is the kernel's
 * own: the far end closes with a byte unread. Far ends move when the clock's epoll_wait() lets them, never within a
 * call of the library. */
#ifndef LINKPOOL_TESTS_SIM_SEAM_ENDS_H
#define LINKPOOL_TESTS_SIM_SEAM_ENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "linkpool/driver.h"
#include "linkpool/testing.h"

struct ends;

struct ends *ends_new(void);
void ends_free(struct ends *ends);
const struct linkpool_env *ends_env(const struct ends *ends);
/** Does what is due. @return when the next is; INFINITY: nothing is. For struct clock_world. */
double ends_move(void *data, double now);
/** Near ends that are open. */
unsigned ends_near(const struct ends *ends);

void ends_peer(struct ends *ends, unsigned i, const char *address, enum testing_behaviour behaviour);
void ends_behave(struct ends *ends, unsigned i, enum testing_behaviour behaviour);
void ends_echo(struct ends *ends, unsigned i, bool on);
void ends_greet(struct ends *ends, unsigned i, const char *text);
void ends_delay(struct ends *ends, unsigned i, double connect, double answer);
void ends_say(struct ends *ends, unsigned i, const char *text);
void ends_cut(struct ends *ends, unsigned i, enum link_reason how);
void ends_window(struct ends *ends, unsigned i, size_t bytes);
unsigned ends_accepted(const struct ends *ends, unsigned i);
unsigned ends_open(const struct ends *ends, unsigned i);
size_t ends_bytes(const struct ends *ends, unsigned i);

#endif
