/* options.c - options copied by their size, and refusals that name the option, its value and its range. */
#include "link/options.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "link/internal.h"

void link__take(void *taken, const void *given, size_t size)
{
    size_t had;

    if (!given)
        return;
    memcpy(&had, given, sizeof had);
    if (had <= sizeof had) /* no size was set: the defaults */
        return;
    memcpy((char *)taken + sizeof had, (const char *)given + sizeof had, (had < size ? had : size) - sizeof had);
}

int link__refuse(struct link_check to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (to.n)
        vsnprintf(to.text, to.n, format, args);
    va_end(args);
    return LINKPOOL_EINVAL;
}

/* Below it a moment and the same moment later are one number, on a machine that is up for weeks. */
static const double shortest_time = 1e-6;

int link__check_time(struct link_check to, const char *option, double value, bool zero)
{
    if ((zero && value == 0) || (value >= shortest_time && value <= LINK_TEN_YEARS))
        return 0;
    return link__refuse(
        to, "%s is %g; it is %sfrom %g s to ten years", option, value, zero ? "0, or " : "", shortest_time);
}

int link__check_count(struct link_check to, const char *option, unsigned value, unsigned min, unsigned max)
{
    if (value >= min && value <= max)
        return 0;
    return link__refuse(to, "%s is %u; it is from %u to %u", option, value, min, max);
}

/* Of what is used where it lies, not copied: all of it must be there. */
int link__check_size(struct link_check to, const char *what, size_t size, size_t least)
{
    if (size >= least)
        return 0;
    return link__refuse(to, "%s.size is %zu; it is at least %zu", what, size, least);
}

static int check_tcp(struct link_check to, const struct transport_tcp_options *options)
{
    int error = link__check_size(to, "transport.config", options->size, sizeof *options);

    if (error || (error = link__check_local(to, options->local)))
        return error;
    /* The system counts milliseconds in an int. */
    if (options->user_timeout >= 0 && options->user_timeout <= INT_MAX / 1000)
        return 0;
    return link__refuse(to, "user_timeout is %g; it is from 0 to %d s", options->user_timeout, INT_MAX / 1000);
}

int link__check_transport(struct link_check to, const struct transport *transport)
{
    if (!transport || link__check_size(to, "transport", transport->size, sizeof *transport))
        return transport ? LINKPOOL_EINVAL : link__refuse(to, "transport is NULL");
    if (!transport->open || !transport->close || !transport->idle)
        return link__refuse(to, "transport lacks open, idle or close");
    if (transport->open == transport_tcp_open && transport->config)
        return check_tcp(to, transport->config);
    return 0;
}

int link__check_protocol(struct link_check to, const struct protocol *protocol)
{
    if (!protocol || link__check_size(to, "protocol", protocol->size, sizeof *protocol))
        return protocol ? LINKPOOL_EINVAL : link__refuse(to, "protocol is NULL");
    if (protocol->flags & PROTOCOL_SHARED && !protocol->input)
        return link__refuse(to, "protocol is shared and lacks input");
    return 0;
}

int link__check_local(struct link_check to, const char *local)
{
    struct link_address address;
    char why[128];

    if (!local || !*local || !link__parse_local(local, &address, why, sizeof why))
        return 0;
    return link__refuse(to, "local is no address: %s", why);
}

int link__check_env(struct link_check to, const struct linkpool_env *env)
{
    if (!env || !env->socket || !env->connect || !env->bind || !env->setsockopt || !env->getsockopt || !env->recvmsg ||
        !env->sendmsg || !env->shutdown || !env->close || !env->realloc || !env->random)
        return link__refuse(to, "env lacks one of its calls");
    return 0;
}

int link__check_heartbeat(struct link_check to, const struct heartbeat_policy *policy)
{
    char why[128];

    if (!policy)
        return link__refuse(to, "heartbeat is NULL");
    return heartbeat_policy_check(policy, why, sizeof why) ? link__refuse(to, "heartbeat: %s", why) : 0;
}

void link_options_init_sized(struct link_options *options, size_t size)
{
    struct link_options all = {.transport = &transport_tcp,
        .protocol = &protocol_raw,
        .backoff = &backoff_default,
        .heartbeat = &heartbeat_default,
        .connect_timeout = 3,
        .reset_timeout = 3,
        .drain_timeout = 30,
        .env = &linkpool_env_system};

    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

void link__options_take(struct link_options *taken, const struct link_options *given)
{
    link_options_init(taken);
    link__take(taken, given, sizeof *taken);
}

int link_options_check(const struct link_options *given, char *text, size_t n)
{
    struct link_check to = {text, n};
    struct link_options options;
    char why[128];
    int error;

    link__options_take(&options, given);
    if ((error = link__check_transport(to, options.transport)) ||
        (error = link__check_protocol(to, options.protocol)) || (error = link__check_local(to, options.local)) ||
        (error = link__check_env(to, options.env)) ||
        (error = link__check_time(to, "connect_timeout", options.connect_timeout, false)) ||
        (error = link__check_time(to, "reset_timeout", options.reset_timeout, false)) ||
        (error = link__check_time(to, "drain_timeout", options.drain_timeout, false)) ||
        (error = link__check_time(to, "read_timeout", options.read_timeout, true)))
        return error;
    if (!options.backoff)
        return link__refuse(to, "backoff is NULL");
    if (backoff_policy_check(options.backoff, why, sizeof why))
        return link__refuse(to, "backoff: %s", why);
    return link__check_heartbeat(to, options.heartbeat);
}

void link__take_observer(struct pool_observer *taken, const struct pool_observer *given)
{
    *taken = (struct pool_observer){.size = sizeof *taken};
    link__take(taken, given, sizeof *taken);
}
