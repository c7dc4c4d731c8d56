/* peers.h - the servers of a game: what each does to those who connect. */
#ifndef LINKPOOL_TESTS_SIM_PEERS_H
#define LINKPOOL_TESTS_SIM_PEERS_H

#include "tests/sim/sim.h"

/** Makes the i-th peer, or makes it again after a crash. */
void peers__start(struct sim *s, unsigned i);
void peers__crash(struct peer *peer);
/** Tells each of its streams' connections that it takes all that it ever takes. */
void peers__make_room(struct sim *s, struct peer *peer);
/** To some of its streams' connections: another room, a notice that it leaves, the end of a stream. */
void peers__speak(struct sim *s, struct peer *peer);
/** Ends some of its connections. */
void peers__cut_some(struct sim *s, struct peer *peer, enum link_reason how);

#endif
