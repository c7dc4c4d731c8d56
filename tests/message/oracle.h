/* oracle.h - the rules that matter most, checked anew on the bytes of a message that was found good, in the plainest
 * way: what the parser lets pass by mistake is seen here. */
#ifndef TESTS_MESSAGE_ORACLE_H
#define TESTS_MESSAGE_ORACLE_H

#include "tests/message/driver.h"

/** Ends the program unless what was found good of a message that begins at `bytes`, its head or all of it, keeps the
 * rules. */
void oracle_check(const struct outcome *outcome, const char *bytes);

/** Ends the program unless the message, which the proxy has composed, has no field for one connection alone but those
 * that the proxy writes itself. */
void oracle_check_composed(const struct outcome *composed);

#endif
