/* head.h - the head of an HTTP/1 message, taken apart and checked.
 *
 * Texts point into the bytes that were parsed, and hold as long as those stay put. */
#ifndef LBPROXY_HEAD_H
#define LBPROXY_HEAD_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEAD_MAX_FIELDS = 256,  /* more are refused, as a head that is too large */
    HEAD_MAX_TARGET = 8192, /* bytes */
    HEAD_MAX_OPTIONS = 64   /* tokens in all Connection fields of a head */
};

struct text {
    const char *at;
    size_t n;
};

/** Fields that mean something to a proxy. */
enum field_name {
    FIELD_OTHER,
    FIELD_AUTHORIZATION,
    FIELD_CLOSE, /* reserved (RFC 9112, section 9.6): Connection: close would name it */
    FIELD_CONNECTION,
    FIELD_CONTENT_LENGTH,
    FIELD_EXPECT,
    FIELD_HOST,
    FIELD_HTTP2_SETTINGS,
    FIELD_KEEP_ALIVE,
    FIELD_PROXY_AUTHENTICATE,
    FIELD_PROXY_AUTHORIZATION,
    FIELD_PROXY_CONNECTION,
    FIELD_TE,
    FIELD_TRAILER,
    FIELD_TRANSFER_ENCODING,
    FIELD_UPGRADE,
    FIELD_VIA,
    FIELD_WWW_AUTHENTICATE,
    FIELD_X_FORWARDED_FOR,
    FIELD_X_FORWARDED_PROTO,
    FIELD_X_REQUEST_ID
};

struct field {
    struct text name, value; /* as they came, blanks around the value taken off */
    enum field_name known;
    bool hop; /* for this connection alone: named in Connection, or by the protocol's rules; not passed on */
};

/** How a message's end is known. */
enum framing {
    FRAMING_NONE,       /* no body */
    FRAMING_LENGTH,     /* so many bytes */
    FRAMING_CHUNKED,    /* until the last chunk */
    FRAMING_UNTIL_CLOSE /* answers: until the peer closes */
};

struct head {
    unsigned minor;            /* HTTP/1.minor: 0 or 1 */
    enum llhttp_method method; /* requests */
    struct text target;    /* requests: in origin-form ("/path?query") or "*"; "?query" where "http://host?query" was
                              given: compose_request() writes the '/' */
    struct text host;      /* requests: the authority, from the target or Host; n 0: none was given */
    unsigned status;       /* answers: 100 to 599 */
    struct text reason;    /* answers: may be empty */
    enum framing framing;  /* of the body that comes: an answer to HEAD has none, whatever its fields say */
    bool has_length;       /* one Content-Length was given */
    uint64_t length;       /* its value */
    bool chunked;          /* Transfer-Encoding: chunked was given */
    bool keep_alive;       /* its sender can go on with another message */
    bool expects_continue; /* requests: Expect: 100-continue, on HTTP/1.1 */
    bool upgrade;          /* Connection: upgrade, and one Upgrade field, of another name than h2c */
    bool identity;         /* a login that is the connection's is under way: NTLM or Negotiate */
    bool names_fields;     /* Connection names fields, which may be in the trailer too */
    unsigned n_fields;
    struct field fields[HEAD_MAX_FIELDS];
};

#endif
