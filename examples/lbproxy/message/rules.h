/* rules.h - what the fields of a head must say together: its framing, its host, its connection. */
#ifndef LBPROXY_RULES_H
#define LBPROXY_RULES_H

#include "examples/lbproxy/message/head.h"
#include "examples/lbproxy/message/message.h"

/** Judges a request, whose start line and fields are set, and sets the rest. @return NULL, or what is wrong. */
const struct fault *rules_request(struct head *head);

/** Judges an answer; `to_head`: to a HEAD. @return as above. */
const struct fault *rules_answer(struct head *head, bool to_head);

#endif
