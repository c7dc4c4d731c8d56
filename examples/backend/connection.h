/* connection.h - the server's connections, from accepting to their end.
 *
 * Requests of a connection are answered one at a time and in order; bodies are read and discarded; headers are
 * bounded. A request's id is written to the log before anything else happens to it. */
#ifndef BACKEND_CONNECTION_H
#define BACKEND_CONNECTION_H

struct server;

/** Takes a client's connection on; `fd` is its now. */
void connection_new(struct server *server, int fd);

/** Ends all of the server's connections. */
void connections_end(struct server *server);

#endif
