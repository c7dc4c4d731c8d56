/* message.h - one HTTP/1 message as it comes in: its head, in one piece, then its body, piece by piece.
 *
 * llhttp parses; what it lets pass and a proxy must not is refused here (guard.c, rules.c). What is found depends on
 * the bytes alone, not on how they were split. Knows no socket. */
#ifndef LBPROXY_MESSAGE_H
#define LBPROXY_MESSAGE_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>

#include "examples/lbproxy/message/guard.h"
#include "examples/lbproxy/message/head.h"
#include "examples/lbproxy/message/parts.h"

enum message_kind {
    MESSAGE_REQUEST,
    MESSAGE_ANSWER,
    MESSAGE_ANSWER_TO_HEAD /* an answer without a body, whatever its head says */
};

enum message_step {
    MESSAGE_MORE,  /* more bytes are needed, or (message_body) the parts are full */
    MESSAGE_WHOLE, /* the head, or the message, has come whole */
    MESSAGE_BAD    /* `fault` says what is wrong; nothing more can be made of the connection */
};

/** Why a message is refused: for requests the status that says so, for answers 502. */
struct fault {
    unsigned status;
    const char *text; /* static: "Content-Length and Transfer-Encoding together" */
};

enum {
    MESSAGE_MAX_TRAILER = GUARD_MAX_TRAILER /* bytes of all trailer fields */
};

struct message {
    enum message_kind kind;
    struct fault fault;
    size_t scanned;    /* the part of the head that message_scan() has looked at */
    size_t start;      /* where the start line begins: after an empty line, if one came first */
    size_t line;       /* where the line under way begins */
    unsigned lines;    /* of fields, counted by message_scan() */
    struct head *head; /* while message_head() runs */
    struct text name, value;
    struct parts *parts; /* while message_body() runs */
    struct guard guard;  /* of what frames a chunked body */
    bool drops_trailer;  /* its fields may be for one connection alone */
    char *trailer;       /* "Name: value\r\n" for each field that may go on; NULL: none; owned */
    size_t trailer_n;
    size_t trailer_name_n, trailer_value_n; /* of the field under way, which is not in trailer_n yet */
    bool whole;
    llhttp_t parser;
};

/** Begins a message anew; what the one before held has been given up by message_end(). */
void message_begin(struct message *message, enum message_kind kind);

/** Frees what it holds; twice is safe. */
void message_end(struct message *message);

/**
 * Looks for the end of the head.
 *
 * @param bytes  all that has come of the message: on each call the same bytes again, perhaps elsewhere, and more.
 * @param max    the most a head may have, in bytes, start line and blank line included.
 * @param head_n gets the head's length.
 * @return MESSAGE_WHOLE, MESSAGE_MORE, or MESSAGE_BAD: a line that ends in a bare LF, a folded one, a head over `max`
 *         (431), a start line over HEAD_MAX_TARGET (414), ...
 */
enum message_step message_scan(struct message *message, const char *bytes, size_t n, size_t max, size_t *head_n);

/** Takes a whole head, which message_scan() has found, apart and checks it by all rules. @return MESSAGE_WHOLE: the
 * head is good, and the body follows, unless `message->whole` says that there is none; or MESSAGE_BAD. */
enum message_step message_head(struct message *message, const char *bytes, size_t head_n, struct head *head);

/**
 * Takes the next bytes of the body.
 *
 * @param used   gets how many bytes were taken: all, unless the message is whole or `parts` full.
 * @param parts  gets the pieces of the body, which point into `bytes`. Empty before.
 * @return MESSAGE_WHOLE (a chunked body's trailer fields are in `trailer`), MESSAGE_MORE or MESSAGE_BAD: what is in
 *         `parts` then came before the fault.
 */
enum message_step message_body(struct message *message, const char *bytes, size_t n, size_t *used, struct parts *parts);

/** The peer has closed. @return MESSAGE_WHOLE where that is how the body ends, else MESSAGE_BAD. */
enum message_step message_close(struct message *message);

#endif
