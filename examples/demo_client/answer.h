/* answer.h - one HTTP/1.1 answer after another from a server's bytes, with llhttp.
 *
 * Parsing stops after each whole answer. Of its headers X-Backend and X-Request-Id are kept. */
#ifndef DEMO_CLIENT_ANSWER_H
#define DEMO_CLIENT_ANSWER_H

#include <llhttp.h>
#include <stddef.h>

enum {
    ANSWER_MAX_VALUE = 65 /* bytes of a header's value, its NUL included; longer ones are cut off */
};

enum answer_step {
    ANSWER_MORE,  /* all bytes are used up, and the answer is not whole yet */
    ANSWER_WHOLE, /* and nothing followed it */
    ANSWER_BAD    /* `fault` says what was wrong */
};

struct answer {
    char backend[ANSWER_MAX_VALUE]; /* out: of the latest answer that had one; "" before */
    char id[ANSWER_MAX_VALUE];      /* out: "" when there was none */
    const char *fault;              /* out: static */
    llhttp_t parser;                /* the rest is answer.c's */
    size_t name_n, value_n;
    char name[32], value[ANSWER_MAX_VALUE];
};

/** Makes it ready for a connection's first byte. */
void answer_init(struct answer *answer);

/** Parses `n` bytes; anything but one whole 200 is bad. */
enum answer_step answer_parse(struct answer *answer, const char *bytes, size_t n);

#endif
