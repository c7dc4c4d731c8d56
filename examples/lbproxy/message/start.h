/* start.h - the first line of a message: "GET /path HTTP/1.1" or "HTTP/1.1 200 OK". */
#ifndef LBPROXY_START_H
#define LBPROXY_START_H

#include <stdbool.h>

#include "examples/lbproxy/message/head.h"
#include "examples/lbproxy/message/message.h"

/** Takes a request's line, without its line end, apart: method, minor, target, and the host of an absolute-form.
 * @return NULL, or what is wrong. */
const struct fault *start_request(struct text line, struct head *head);

/** Takes an answer's line apart: minor, status, reason. @return as above. */
const struct fault *start_answer(struct text line, struct head *head);

/** Whether the text is a host, with or without a port: "a.example:80", "[::1]". */
bool start_is_authority(struct text text);

/** A method's name. */
struct text start_method(enum llhttp_method method);

#endif
