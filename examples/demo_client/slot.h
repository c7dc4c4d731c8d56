/* slot.h - one connection at a time: it asks a number of requests one after the other, each with an id of its own, then
 * another connection takes its place. */
#ifndef DEMO_CLIENT_SLOT_H
#define DEMO_CLIENT_SLOT_H

struct client;
struct slot;

/** Makes as many slots as the client is told to and starts them. The loop ends when the client is ending and each is
 * done. What fails ends the program. */
void slots_start(struct client *client);

/** Frees them; the loop does not run any more. */
void slots_free(struct client *client);

#endif
