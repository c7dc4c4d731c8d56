/* internal.h - what the files of message.h share. */
#ifndef LBPROXY_INTERNAL_H
#define LBPROXY_INTERNAL_H

#include <stddef.h>

#include "examples/lbproxy/message/message.h"

/** Says what is wrong with the message: of an answer it is 502 in every case. The first fault stays.
 * @return MESSAGE_BAD. */
enum message_step message__refuse(struct message *message, struct fault fault);

/** Parts of a trailer field's name and value, as llhttp finds them. */
void trailer__name(struct message *message, const char *at, size_t n);
void trailer__value(struct message *message, const char *at, size_t n);

/** The field is whole: it is kept, or left out. @return NULL, or why it may not be in a trailer. */
const struct fault *trailer__over(struct message *message);

#endif
