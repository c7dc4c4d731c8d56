/* options.h - options that know their size: older callers' shorter ones are filled up, and values are checked by name.
 */
#ifndef LINKPOOL_LINK_OPTIONS_H
#define LINKPOOL_LINK_OPTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "linkpool/link.h"

/** Copies what of `given` fits over the defaults already in `taken`; NULL keeps the defaults. Both begin with their
 * size. */
void link__take(void *taken, const void *given, size_t size);
/** Link options with defaults filled in. */
void link__options_take(struct link_options *taken, const struct link_options *given);

/* Where a check writes what is wrong; each of these is 0 or LINKPOOL_EINVAL. */
struct link_check {
    char *text;
    size_t n;
};
int link__refuse(struct link_check to, const char *format, ...) __attribute__((format(printf, 2, 3)));
int link__check_time(struct link_check to, const char *option, double value, bool zero);
int link__check_count(struct link_check to, const char *option, unsigned value, unsigned min, unsigned max);
int link__check_size(struct link_check to, const char *what, size_t size, size_t least);
int link__check_transport(struct link_check to, const struct transport *transport);
int link__check_protocol(struct link_check to, const struct protocol *protocol);
int link__check_local(struct link_check to, const char *local);
int link__check_heartbeat(struct link_check to, const struct heartbeat_policy *policy);
int link__check_env(struct link_check to, const struct linkpool_env *env);

#define LINK_TEN_YEARS (10 * 365.25 * 86400.0) /* a relative time over this is a mistake */

/* Of one lease, call or group: any above 0, since what is left until some moment may be next to nothing. */
static inline bool link__is_timeout(double seconds)
{
    return seconds > 0 && (seconds <= LINK_TEN_YEARS || seconds == (double)INFINITY);
}

#endif
