/* address.h - one place to connect to, parsed into what connect() takes.
 *
 * The one canonical text of an address is what keys are made of and what people are shown. */
#ifndef LINKPOOL_LINK_ADDRESS_H
#define LINKPOOL_LINK_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    LINK_ADDRESS_TEXT = 160
}; /* room for any canonical text, its NUL included */

struct link_address {
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } name;
};

/**
 * Parses `length` bytes of `text`: 10.0.0.7:80, [::1]:80, [fe80::1%eth0]:80, unix:/run/x.sock, unix:@abstract.
 *
 * @param why  gets what is wrong and at which byte; may be NULL with n 0.
 * @return 0, or LINKPOOL_EADDRESS, and then *address is untouched.
 */
int link_address_parse(const char *text, size_t length, struct link_address *address, char *why, size_t n);

/** Writes the canonical text. Two addresses are the same place exactly when their texts are equal. */
void link_address_format(const struct link_address *address, char text[LINK_ADDRESS_TEXT]);

#endif
