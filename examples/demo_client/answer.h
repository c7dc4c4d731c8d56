/* answer.h - one HTTP/1.1 answer after another from a server's bytes, with llhttp.
 *
 * Parsing stops after each whole answer. Of its headers X-Backend and X-Request-Id are kept, of its body the length and
 * the first line: that is where a proxy says why it answers itself. */
#ifndef DEMO_CLIENT_ANSWER_H
#define DEMO_CLIENT_ANSWER_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ANSWER_MAX_VALUE = 65, /* bytes of a header's value, its NUL included; longer ones are cut off */
    ANSWER_MAX_LINE = 200  /* and of the body's first line */
};

enum answer_step {
    ANSWER_MORE,  /* all bytes are used up, and the answer is not whole yet */
    ANSWER_WHOLE, /* and nothing followed it */
    ANSWER_BAD    /* `fault` says what was wrong */
};

struct answer {
    char backend[ANSWER_MAX_VALUE]; /* out: once it is whole its own, "" without one; until then as the last one's */
    char id[ANSWER_MAX_VALUE];      /* out: "" when there was none */
    unsigned status;                /* out: of a whole one */
    bool keep_alive;                /* out: of a whole one: another may be asked for */
    uint64_t body;                  /* out: its bytes */
    char line[ANSWER_MAX_LINE];     /* out: the body's first */
    const char *fault;              /* out: static */
    llhttp_t parser;                /* the rest is answer.c's */
    bool names_backend;
    size_t name_n, value_n, line_n;
    char name[32], value[ANSWER_MAX_VALUE];
};

/** Makes it ready for a connection's first byte. */
void answer_init(struct answer *answer);

/** Parses `n` bytes; anything but one whole answer is bad. */
enum answer_step answer_parse(struct answer *answer, const char *bytes, size_t n);

#endif
