/* hop.h - a transport outside the tree, as a client library would need it: it owns its socket, and on the way up it
 * leaves its first for a second, as libpq does between two addresses or two ways to encrypt. */
#ifndef OUTSIDE_HOP_H
#define OUTSIDE_HOP_H

#include <linkpool/linkpool.h>

/* The second socket is opened before the first is closed: another number. */
extern const struct transport hop_to_another;

/* The first is closed before: as a rule the same number again, and still another socket. */
extern const struct transport hop_to_the_same;

#endif
