/* fields.h - the fields of a head: what each means to a proxy, and which are for one connection alone. */
#ifndef LBPROXY_FIELDS_H
#define LBPROXY_FIELDS_H

#include <stdbool.h>

#include "examples/lbproxy/message/head.h"

/** What a field of this name means. The name is a token. */
enum field_name field_find(struct text name);

/** Whether such a field is for one connection alone, whatever Connection says. */
bool field_is_hop(enum field_name name);

/** Whether such a field goes on, or is written anew, even when Connection names it. */
bool field_is_kept(enum field_name name);

/** Adds a field, blanks around its value taken off. @return false: there are too many. */
bool head_add(struct head *head, struct text name, struct text value);

#endif
