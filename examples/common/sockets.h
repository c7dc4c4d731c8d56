/* sockets.h - the example programs' own sockets, from addresses as people write them: 127.0.0.1:80, [::1]:80,
 * unix:/run/x.sock, unix:@abstract. Every socket made here is non-blocking and close-on-exec. */
#ifndef EXAMPLES_SOCKETS_H
#define EXAMPLES_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    SOCKET_TEXT = 160, /* room for any address as text, its NUL included */
    SOCKET_HOST = 64   /* and for one of IPv4 or IPv6 without its port */
};

struct socket_address {
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } name;
};

/** Parses an address; port 0 is fine here. Returns 0, or -1 and then *why is a static text. */
int socket_parse(const char *text, struct socket_address *address, const char **why);

/**
 * Makes a listening socket, or ends the program with a line that names the option, the address and what is wrong.
 *
 * A socket file that nobody listens on any more is replaced. With `share` the port may be taken by more sockets of
 * this user (SO_REUSEPORT).
 */
int socket_listen(const char *option, const char *text, bool share);

/** Starts to connect. Returns the socket, under way or connected, or -1 and errno. */
int socket_connect(const struct socket_address *address);

/** Writes the address a socket is bound to, as it would be given on a command line. */
void socket_name(int fd, char text[SOCKET_TEXT]);

/** Writes the address a socket is connected to, without the port; "unknown" where it has none, as unix sockets. */
void socket_peer_host(int fd, char text[SOCKET_HOST]);

/** Prints a line "WHAT on ADDR" with the address a socket is bound to, for whoever has started the program. */
void socket_announce(const char *what, int fd);

/** Sends what is written at once; unix sockets do so anyway. */
void socket_no_delay(int fd);

/** Closes so that the peer sees a reset rather than an end. */
void socket_reset(int fd);

/** Removes the file of a unix address; other addresses leave nothing behind. */
void socket_remove_file(const char *text);

#endif
