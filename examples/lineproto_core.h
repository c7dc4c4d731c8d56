/* lineproto_core.h - a protocol of lines with a login, for one holder a link at a time: USER and PASS before a link is
 * lent, RSET between two holders, PING after a long silence. Each line of ours is answered by one, +OK or -ERR first.
 */
#ifndef EXAMPLES_LINEPROTO_CORE_H
#define EXAMPLES_LINEPROTO_CORE_H
#include <linkpool/protocol.h>
enum {
    LINE_MOST = 512 /* bytes of the longest line either way, its end included */
};
struct line_login {
    const char *user, *password; /* of one line each */
};
/** A protocol that logs in so. `login` is borrowed until the last link is gone. */
struct protocol line_protocol(const struct line_login *login);
/** Finds the line at the front of `n` bytes and puts a NUL in place of its end. @return its bytes, its end included;
 * 0: it is not whole yet; LINKPOOL_EINVAL: it never will be. */
ssize_t line_complete(char *bytes, size_t n);
#endif
