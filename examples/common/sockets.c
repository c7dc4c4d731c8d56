/* sockets.c - addresses to sockets and back. Numeric addresses only, so that nothing here waits for a name server. */
#include "examples/common/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/common/options.h"

static int parse_unix(const char *path, struct socket_address *address, const char **why)
{
    struct sockaddr_un *un = &address->name.un;
    size_t n = strlen(path);

    if (n == 0 || strcmp(path, "@") == 0) {
        *why = "the path is empty";
        return -1;
    }
    if (n >= sizeof un->sun_path) {
        *why = "the path is longer than 107 bytes";
        return -1;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n + 1);
    address->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    if (path[0] == '@') {
        un->sun_path[0] = '\0'; /* abstract: its length counts, not a NUL */
        address->size--;
    }
    return 0;
}

/* Takes the brackets off and splits at the last colon. */
static int split(const char *text, char host[80], const char **port, const char **why)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon == NULL ? 0 : (size_t)(colon - text);

    if (colon == NULL || n == 0 || n >= 80) {
        *why = "it is neither HOST:PORT nor unix:PATH";
        return -1;
    }
    if (text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    } else if (memchr(text, ':', n) != NULL) {
        *why = "an IPv6 address goes in brackets: [::1]:80";
        return -1;
    }
    memcpy(host, text, n);
    host[n] = '\0';
    *port = colon + 1;
    return 0;
}

int socket_parse(const char *text, struct socket_address *address, const char **why)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const char *port;
    char host[80];

    memset(address, 0, sizeof *address);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, address, why);
    if (split(text, host, &port, why) < 0)
        return -1;
    if (port[0] == '\0' || port[strspn(port, "0123456789")] != '\0' || strlen(port) > 5 || atoi(port) > 65535) {
        *why = "the port is not a number from 0 to 65535";
        return -1;
    }
    if (host[0] == '\0' || getaddrinfo(host, port, &hints, &found) != 0) {
        *why = "the host is not a numeric IPv4 or IPv6 address";
        return -1;
    }
    memcpy(&address->name, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int set_up(int fd)
{
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A socket file outlives its server; one that refuses is nobody's. */
static void remove_stale_file(const struct socket_address *address)
{
    int fd;

    if (address->name.any.sa_family != AF_UNIX || address->name.un.sun_path[0] == '\0')
        return;
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, &address->name.any, address->size) < 0 && errno == ECONNREFUSED)
        unlink(address->name.un.sun_path);
    if (fd >= 0)
        close(fd);
}

int socket_listen(const char *option, const char *text, bool share)
{
    struct socket_address address;
    const char *why;
    int on = 1;
    int fd;

    if (socket_parse(text, &address, &why) < 0)
        die_usage("%s: '%s': %s", option, text, why);
    remove_stale_file(&address);
    fd = set_up(socket(address.name.any.sa_family, SOCK_STREAM, 0));
    if (fd < 0)
        die("%s: %s: %s", option, text, strerror(errno));
    if (address.name.any.sa_family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (share)
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    }
    if (bind(fd, &address.name.any, address.size) < 0 || listen(fd, SOMAXCONN) < 0)
        die("%s: %s: %s", option, text, strerror(errno));
    return fd;
}

int socket_connect(const struct socket_address *address)
{
    int fd = set_up(socket(address->name.any.sa_family, SOCK_STREAM, 0));

    if (fd < 0)
        return -1;
    socket_no_delay(fd);
    if (connect(fd, &address->name.any, address->size) < 0 && errno != EINPROGRESS) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static void name_unix(const struct sockaddr_un *un, socklen_t size, char text[SOCKET_TEXT])
{
    int n = (int)(size - offsetof(struct sockaddr_un, sun_path));

    if (n > 0 && un->sun_path[0] == '\0')
        snprintf(text, SOCKET_TEXT, "unix:@%.*s", n - 1, un->sun_path + 1);
    else
        snprintf(text, SOCKET_TEXT, "unix:%.*s", n, un->sun_path);
}

void socket_name(int fd, char text[SOCKET_TEXT])
{
    struct socket_address address = {.size = sizeof address.name};
    char host[NI_MAXHOST < 100 ? NI_MAXHOST : 100];
    char port[8];

    if (getsockname(fd, &address.name.any, &address.size) < 0)
        snprintf(text, SOCKET_TEXT, "(unknown)");
    else if (address.name.any.sa_family == AF_UNIX)
        name_unix(&address.name.un, address.size, text);
    else if (getnameinfo(&address.name.any, address.size, host, sizeof host, port, sizeof port,
                 NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(text, SOCKET_TEXT, "(unknown)");
    else
        snprintf(text, SOCKET_TEXT, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

void socket_peer_host(int fd, char text[SOCKET_HOST])
{
    struct socket_address address = {.size = sizeof address.name};

    if (getpeername(fd, &address.name.any, &address.size) < 0 || address.name.any.sa_family == AF_UNIX ||
        getnameinfo(&address.name.any, address.size, text, SOCKET_HOST, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, SOCKET_HOST, "unknown");
}

void socket_announce(const char *what, int fd)
{
    char text[SOCKET_TEXT];

    socket_name(fd, text);
    printf("%s on %s\n", what, text);
    fflush(stdout);
}

void socket_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a unix socket refuses, and needs it not */
}

void socket_reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

void socket_remove_file(const char *text)
{
    if (strncmp(text, "unix:", 5) == 0 && text[5] != '@')
        unlink(text + 5);
}
