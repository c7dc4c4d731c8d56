/* lines.h - a shared protocol of lines with a login, outside the tree: the requests of many callers go out one behind
 * the other, and the answers, which begin with +OK or -ERR, come in that order. docs/guide.md goes through it. */
#ifndef OUTSIDE_LINES_H
#define OUTSIDE_LINES_H

#include <linkpool/linkpool.h>

enum {
    LINES_CHANNELS = 16,
    LINES_LONGEST = 512, /* bytes of a line, its end included */
    LINES_REFUSED = 1    /* the code of every -ERR */
};

struct lines_login {
    const char *user, *password;
};

/** `login` is borrowed until the last link is gone. A request is a line without its end, and so is an answer. */
struct protocol lines_protocol(const struct lines_login *login);

#endif
