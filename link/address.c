/* address.c - the text of an address, read and written.
 *
 * Reading is strict: what another program might take for another place (127.1, 010.0.0.1, a path cut short) is
 * refused, with what is wrong and at which byte, counted from 0. A refusal quotes nothing of the text, which may
 * not be printable. Paths and abstract names are taken byte for byte: unix://x is not unix:/x.
 *
 * A scope is an interface: its name, or its number, and both read the same. Only where no interface has the
 * number does the number itself stand in the canonical text. Looking interfaces up asks the system. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linkpool/error.h>
#include <linkpool/link.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What is read, and where a refusal is written. */
struct reading {
    const char *text;
    size_t length;
    char *why;
    size_t n;
};

/* A decimal number within an address, and how its faults are told. */
struct number {
    unsigned max;
    const char *missing, *zeros, *over;
};

static const struct number byte_number = {
    .max = 255,
    .missing = "a number of the IPv4 address is missing",
    .zeros = "a leading zero in the IPv4 address",
    .over = "a number over 255 in the IPv4 address",
};

static const struct number port_number = {
    .max = 65535,
    .missing = "the digits of the port are missing",
    .zeros = "a leading zero in the port",
    .over = "the port is over 65535",
};

static const struct number scope_number = {
    .max = UINT32_MAX,
    .missing = "the scope is missing",
    .zeros = "a leading zero in the number of the scope",
    .over = "the number of the scope is over 4294967295",
};

static int refuse(const struct reading *in, size_t at, const char *what)
{
    snprintf(in->why, in->n, "%s, at byte %zu", what, at);
    return LINKPOOL_EADDRESS;
}

/* These know no locale, unlike those of <ctype.h>. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Bytes from 128 up too: names are written in every language. */
static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || (unsigned char)c >= 128;
}

/* Where `c` first stands before `end`, else `end`. */
static size_t find(const struct reading *in, char c, size_t end)
{
    const char *found = memchr(in->text, c, end);

    return found != NULL ? (size_t)(found - in->text) : end;
}

/* Digits from *at on, which then is the first byte after them. */
static int read_number(const struct reading *in, size_t *at, size_t end, const struct number *kind, unsigned *value)
{
    size_t first = *at;
    unsigned long long sum = 0;

    for (; *at < end && is_digit(in->text[*at]); ++*at) {
        sum = sum * 10 + (unsigned)(in->text[*at] - '0');
        if (sum > kind->max)
            return refuse(in, first, kind->over);
    }
    if (*at == first)
        return refuse(in, first, kind->missing);
    if (in->text[first] == '0' && *at > first + 1)
        return refuse(in, first, kind->zeros);
    *value = (unsigned)sum;
    return 0;
}

/* The rest of an address, from the colon after its host. */
static int read_port(const struct reading *in, size_t at, in_port_t *port)
{
    unsigned value = 0;
    int error;

    if (at == in->length || in->text[at] != ':')
        return refuse(in, at, "a colon and the port are missing");
    at++;
    size_t first = at;
    error = read_number(in, &at, in->length, &port_number, &value);
    if (error != 0)
        return error;
    if (at < in->length)
        return refuse(in, at, "a byte that is no digit after the port");
    if (value == 0)
        return refuse(in, first, "the port is 0");
    *port = htons((in_port_t)value);
    return 0;
}

/* Whether a host without brackets, up to its first colon, looks like the beginning of an IPv6 address. */
static bool lacks_brackets(const struct reading *in, size_t end)
{
    if (end == in->length || memchr(in->text + end + 1, ':', in->length - end - 1) == NULL)
        return false;
    for (size_t at = 0; at < end; at++)
        if (!is_hex(in->text[at]))
            return false;
    return true;
}

/* Refuses all that cannot be an IPv4 address: after it there are digits and dots alone. */
static int check_host(const struct reading *in, size_t end)
{
    size_t at = 0;

    if (lacks_brackets(in, end))
        return refuse(in, 0, "an IPv6 address needs brackets, as in [::1]:80");
    if (end == 0)
        return refuse(in, 0, "the host is missing");
    while (at < end && (is_digit(in->text[at]) || in->text[at] == '.'))
        at++;
    if (at == end)
        return 0;
    if (at == 0 && (in->text[0] == '/' || in->text[0] == '@'))
        return refuse(in, 0, "a unix address begins with unix:");
    if (is_of_name(in->text[at]))
        return refuse(in, at, "not an IPv4 address, and names are not resolved yet");
    return refuse(in, at, "a byte that no host has");
}

static int parse_ipv4(const struct reading *in, struct link_address *address)
{
    struct sockaddr_in *name = &address->name.in;
    size_t end = find(in, ':', in->length);
    size_t at = 0;
    unsigned value = 0;
    unsigned char bytes[4];
    int error = check_host(in, end);

    for (int i = 0; error == 0 && i < 4; i++) {
        if (i > 0 && at++ == end)
            return refuse(in, end, "fewer than four numbers in the IPv4 address");
        error = read_number(in, &at, end, &byte_number, &value);
        bytes[i] = (unsigned char)value;
    }
    if (error != 0)
        return error;
    if (at < end)
        return refuse(in, at, "more than four numbers in the IPv4 address");
    memcpy(&name->sin_addr, bytes, sizeof bytes);
    name->sin_family = AF_INET;
    address->size = sizeof *name;
    return read_port(in, end, &name->sin_port);
}

/* From the bracket to `end`. What is wrong with the groups inet_pton() does not say, nor where. */
static int read_ipv6(const struct reading *in, size_t end, struct in6_addr *address)
{
    char host[INET6_ADDRSTRLEN] = {0};

    if (end == 1)
        return refuse(in, 1, "the host is missing");
    for (size_t at = 1; at < end; at++)
        if (!is_hex(in->text[at]) && in->text[at] != ':' && in->text[at] != '.')
            return refuse(in, at, "a byte that no IPv6 address has");
    if (end - 1 >= sizeof host)
        return refuse(in, sizeof host, "too long for an IPv6 address");
    memcpy(host, in->text + 1, end - 1);
    if (inet_pton(AF_INET6, host, address) != 1)
        return refuse(in, 1, "not an IPv6 address");
    return 0;
}

static bool takes_scope(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LINKLOCAL(address) || IN6_IS_ADDR_MC_LINKLOCAL(address);
}

/* The interface of that name, or 0 and whether that is certain: the system takes a descriptor to look. No name has
 * a colon, but Linux looks up what stands before one. */
static unsigned find_interface(const char *text, size_t length, bool *certain)
{
    char name[IF_NAMESIZE] = {0};
    unsigned index;

    *certain = true;
    if (length >= sizeof name || memchr(text, ':', length) != NULL)
        return 0;
    memcpy(name, text, length);
    errno = 0;
    index = if_nametoindex(name);
    *certain = index != 0 || errno == ENODEV || errno == ENXIO;
    return index;
}

/* A scope that no interface has as its name. One that begins with 25 is a URL's escape of the percent sign,
 * unless it is the number of an interface. */
static int read_scope_number(const struct reading *in, size_t at, size_t end, unsigned *index)
{
    static const char escaped[] = "%25 is an escape of URLs: write % alone";
    bool escape = end - at >= 2 && memcmp(in->text + at, "25", 2) == 0;
    char name[IF_NAMESIZE];
    size_t stop = at;
    int error;

    while (stop < end && is_digit(in->text[stop]))
        stop++;
    if (stop < end)
        return refuse(in, at, escape ? escaped : "no interface has this name");
    stop = at;
    error = read_number(in, &stop, end, &scope_number, index);
    if (error == 0 && *index == 0)
        return refuse(in, at, "the number of the scope is 0");
    if (error == 0 && escape && if_indextoname(*index, name) == NULL)
        return refuse(in, at, escaped);
    return error;
}

static int read_scope(const struct reading *in, size_t at, size_t end, struct sockaddr_in6 *name)
{
    bool certain;
    unsigned index;
    int error = 0;

    if (at == end)
        return refuse(in, at, "the scope is missing");
    if (!takes_scope(&name->sin6_addr))
        return refuse(in, at, "a scope where there is none: the address is not link-local");
    index = find_interface(in->text + at, end - at, &certain);
    if (!certain)
        return refuse(in, at, "the interfaces cannot be looked up now");
    if (index == 0)
        error = read_scope_number(in, at, end, &index);
    name->sin6_scope_id = index;
    return error;
}

static int parse_ipv6(const struct reading *in, struct link_address *address)
{
    struct sockaddr_in6 *name = &address->name.in6;
    size_t end = find(in, ']', in->length);
    size_t percent = find(in, '%', end);
    int error;

    if (end == in->length)
        return refuse(in, end, "the closing bracket is missing");
    error = read_ipv6(in, percent, &name->sin6_addr);
    if (error == 0 && percent < end)
        error = read_scope(in, percent + 1, end, name);
    if (error != 0)
        return error;
    name->sin6_family = AF_INET6;
    address->size = sizeof *name;
    return read_port(in, end + 1, &name->sin6_port);
}

/* From after "unix:". Both kinds hold one byte less than sun_path: a path ends with a NUL, which counts, and an
 * abstract name begins with one. */
static int parse_unix(const struct reading *in, size_t at, struct link_address *address)
{
    struct sockaddr_un *name = &address->name.un;
    size_t most = sizeof name->sun_path - 1;
    bool abstract = at < in->length && in->text[at] == '@';
    size_t first = abstract ? at + 1 : at;
    size_t length = in->length - first;

    if (abstract && length == 0)
        return refuse(in, first, "the abstract name is empty");
    if (!abstract && (length == 0 || in->text[at] != '/'))
        return refuse(in, at, "neither an absolute path nor @ and an abstract name");
    if (length > most)
        return refuse(in, first + most,
            abstract ? "an abstract name of 108 bytes or more: 107 is the most"
                     : "a path of 108 bytes or more: 107 is the most");
    memcpy(name->sun_path + (abstract ? 1 : 0), in->text + first, length);
    name->sun_family = AF_UNIX;
    address->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return 0;
}

int link_address_parse(const char *text, size_t length, struct link_address *address, char *why, size_t n)
{
    static const char unix_prefix[] = "unix:";
    const size_t prefix = sizeof unix_prefix - 1;
    const struct reading in = {text, length, why, n};
    struct link_address read;
    int error;

    if (length == 0)
        return refuse(&in, 0, "the text is empty");
    if (find(&in, '\0', length) < length)
        return refuse(&in, find(&in, '\0', length), "a NUL byte");
    memset(&read, 0, sizeof read);
    if (length >= prefix && memcmp(text, unix_prefix, prefix) == 0)
        error = parse_unix(&in, prefix, &read);
    else if (text[0] == '[')
        error = parse_ipv6(&in, &read);
    else
        error = parse_ipv4(&in, &read);
    if (error == 0)
        *address = read;
    return error;
}

static void format_ipv4(const struct sockaddr_in *name, char text[LINK_ADDRESS_TEXT])
{
    char host[INET_ADDRSTRLEN] = "";

    inet_ntop(AF_INET, &name->sin_addr, host, sizeof host);
    snprintf(text, LINK_ADDRESS_TEXT, "%s:%u", host, (unsigned)ntohs(name->sin_port));
}

/* inet_ntop() writes as RFC 5952 asks: the first longest run of zeros folded, small letters, mapped IPv4 dotted.
 * An interface whose name has a bracket, which Linux allows, goes by its number: the text must be readable. */
static void format_ipv6(const struct sockaddr_in6 *name, char text[LINK_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "";
    char scope[IF_NAMESIZE + 1] = "%";
    unsigned port = ntohs(name->sin6_port);

    inet_ntop(AF_INET6, &name->sin6_addr, host, sizeof host);
    if (name->sin6_scope_id == 0)
        scope[0] = '\0';
    else if (if_indextoname(name->sin6_scope_id, scope + 1) == NULL || strchr(scope, ']') != NULL)
        snprintf(scope, sizeof scope, "%%%u", (unsigned)name->sin6_scope_id);
    snprintf(text, LINK_ADDRESS_TEXT, "[%s%s]:%u", host, scope, port);
}

/* The size bounds the name: it need not end with a NUL where it came from elsewhere than here. */
static void format_unix(const struct sockaddr_un *name, socklen_t size, char text[LINK_ADDRESS_TEXT])
{
    size_t before = offsetof(struct sockaddr_un, sun_path);
    size_t length = size > before ? size - before : 0;
    bool abstract = length > 0 && name->sun_path[0] == '\0';

    if (length > sizeof name->sun_path)
        length = sizeof name->sun_path;
    if (abstract)
        snprintf(text, LINK_ADDRESS_TEXT, "unix:@%.*s", (int)(length - 1), name->sun_path + 1);
    else
        snprintf(text, LINK_ADDRESS_TEXT, "unix:%.*s", (int)length, name->sun_path);
}

void link_address_format(const struct link_address *address, char text[LINK_ADDRESS_TEXT])
{
    text[0] = '\0';
    if (address->name.any.sa_family == AF_INET)
        format_ipv4(&address->name.in, text);
    else if (address->name.any.sa_family == AF_INET6)
        format_ipv6(&address->name.in6, text);
    else if (address->name.any.sa_family == AF_UNIX)
        format_unix(&address->name.un, address->size, text);
}

int link_address_check(const char *address, char *text, size_t n)
{
    struct link_address parsed;
    char canonical[LINK_ADDRESS_TEXT];
    int error;

    if (!address)
        address = "";
    if ((error = link_address_parse(address, strlen(address), &parsed, text, n)))
        return error;
    link_address_format(&parsed, canonical);
    snprintf(text, n, "%s", canonical);
    return 0;
}
