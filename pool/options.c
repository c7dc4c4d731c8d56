/* options.c - defaults, each written once, and refusals that name the option. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "backoff/backoff.h"
#include "link/options.h"
#include "pool/internal.h"

/* ---- hosts ---- */

void pool_host_options_init_sized(struct pool_host_options *options, size_t size)
{
    struct pool_host_options all = {.max_links = 64,
        .first_connecting = 8,
        .max_connecting = 128,
        .idle_timeout = 55,
        .connect_timeout = 3,
        .reset_timeout = 3,
        .drain_timeout = 30,
        .backoff = &backoff_default,
        .transport = &transport_tcp,
        .protocol = &protocol_raw,
        .heartbeat = &heartbeat_default,
        .max_unanswered = 3};

    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

void pool__host_options_take(struct pool_host_options *taken, const struct pool_host_options *given)
{
    pool_host_options_init(taken);
    link__take(taken, given, sizeof *taken);
}

static int check_counts(struct link_check to, const struct pool_host_options *options)
{
    int error;

    if ((error = link__check_count(to, "max_links", options->max_links, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "min_links", options->min_links, 0, options->max_links)) ||
        (error = link__check_count(to, "max_connecting", options->max_connecting, 1, UINT16_MAX)) ||
        (error = link__check_count(to, "max_channels", options->max_channels, 0, UINT32_MAX / 2)))
        return error;
    return link__check_count(to, "first_connecting", options->first_connecting, 1, options->max_connecting);
}

static int check_times(struct link_check to, const struct pool_host_options *options)
{
    int error;

    if ((error = link__check_time(to, "idle_timeout", options->idle_timeout, true)) ||
        (error = link__check_time(to, "max_age", options->max_age, true)) ||
        (error = link__check_time(to, "connect_timeout", options->connect_timeout, false)) ||
        (error = link__check_time(to, "reset_timeout", options->reset_timeout, false)) ||
        (error = link__check_time(to, "read_timeout", options->read_timeout, true)))
        return error;
    return link__check_time(to, "drain_timeout", options->drain_timeout, false);
}

int pool_host_options_check(const struct pool_host_options *given, char *text, size_t n)
{
    struct link_check to = {text, n};
    struct pool_host_options options;
    char why[128];
    int error;

    pool__host_options_take(&options, given);
    if ((error = check_counts(to, &options)) || (error = check_times(to, &options)) ||
        (error = link__check_transport(to, options.transport)) || (error = link__check_protocol(to, options.protocol)))
        return error;
    if (!options.backoff)
        return link__refuse(to, "backoff is NULL");
    if (backoff_policy_check(options.backoff, why, sizeof why))
        return link__refuse(to, "backoff: %s", why);
    return link__check_heartbeat(to, options.heartbeat);
}

/* ---- options that hosts share ---- */

static void complete(struct pool_settings *settings, const struct pool_host_options *given)
{
    struct pool_host_options *options = &settings->options;

    pool__host_options_take(options, given);
    settings->terms = (struct link_terms){.connect_timeout = options->connect_timeout,
        .reset_timeout = options->reset_timeout,
        .drain_timeout = options->drain_timeout,
        .max_age = options->max_age,
        .read_timeout = options->read_timeout,
        .max_channels = options->max_channels,
        .max_uses = options->max_uses,
        .backoff = backoff__whole(options->backoff),
        .heartbeat = link__heartbeat_whole(options->heartbeat)};
    options->backoff = &settings->terms.backoff;
    options->heartbeat = &settings->terms.heartbeat;
}

struct pool_settings *pool__settings_new(const struct linkpool_env *env, const struct pool_host_options *given)
{
    struct pool_settings *settings = link__alloc(env, sizeof *settings);

    if (settings) {
        settings->refs = 1;
        complete(settings, given);
    }
    return settings;
}

static bool same_options(const struct pool_host_options *a, const struct pool_host_options *b)
{
    return a->max_links == b->max_links && a->min_links == b->min_links && a->first_connecting == b->first_connecting &&
           a->max_connecting == b->max_connecting && a->max_uses == b->max_uses && a->spread_links == b->spread_links &&
           a->idle_timeout == b->idle_timeout && a->max_age == b->max_age && a->connect_timeout == b->connect_timeout &&
           a->reset_timeout == b->reset_timeout && a->drain_timeout == b->drain_timeout &&
           a->read_timeout == b->read_timeout && a->max_unanswered == b->max_unanswered &&
           a->max_channels == b->max_channels;
}

static bool same_heartbeat(const struct heartbeat_policy *a, const struct heartbeat_policy *b)
{
    return a->interval == b->interval && a->timeout == b->timeout && a->misses == b->misses &&
           a->watch_interval == b->watch_interval && a->min == b->min && a->max == b->max && a->jitter == b->jitter;
}

static bool same_backoff(const struct backoff_policy *a, const struct backoff_policy *b)
{
    return a->jitter == b->jitter && a->base == b->base && a->factor == b->factor && a->cap == b->cap &&
           a->floor == b->floor && a->spread == b->spread && a->max_attempts == b->max_attempts &&
           a->stable_after == b->stable_after && a->reconnect_spread == b->reconnect_spread && a->delay == b->delay &&
           a->data == b->data;
}

bool pool__settings_are(const struct pool_settings *settings, const struct pool_host_options *given)
{
    struct pool_settings other;

    complete(&other, given); /* transport and protocol are in the key */
    return same_options(&settings->options, &other.options) &&
           same_backoff(&settings->terms.backoff, &other.terms.backoff) &&
           same_heartbeat(&settings->terms.heartbeat, &other.terms.heartbeat);
}

void pool__settings_drop(const struct linkpool_env *env, struct pool_settings *settings)
{
    if (!--settings->refs)
        link__release(env, settings, sizeof *settings);
}

/* ---- endpoints ---- */

static int check_endpoint(struct link_check to, const struct pool_endpoint *endpoint)
{
    char why[LINK_ADDRESS_TEXT];
    int error;

    if (!endpoint->address)
        return link__refuse(to, "no address is given");
    if (link_address_check(endpoint->address, why, sizeof why)) {
        link__refuse(to, "%.100s: %s", endpoint->address, why);
        return LINKPOOL_EADDRESS;
    }
    if ((error = link__check_local(to, endpoint->local)))
        return error;
    if (endpoint->transport && (error = link__check_transport(to, endpoint->transport)))
        return error;
    return endpoint->protocol ? link__check_protocol(to, endpoint->protocol) : 0;
}

int pool__endpoint_take(struct pool_endpoint *taken, const struct pool_endpoint *given, char *text, size_t n)
{
    struct link_check to = {text, n};

    /* In a list the size is the step as well, so nothing is read by a wrong one. */
    if (given->size < offsetof(struct pool_endpoint, address) + sizeof given->address)
        return link__refuse(to, "the endpoint has no size");
    *taken = (struct pool_endpoint){.size = sizeof *taken};
    link__take(taken, given, sizeof *taken);
    return check_endpoint(to, taken);
}

/* ---- targets ---- */

void pool_target_options_init_sized(struct pool_target_options *options, size_t size)
{
    struct pool_target_options all = {.picker = &pool_round_robin};

    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

void pool__target_options_take(struct pool_target_options *taken, const struct pool_target_options *given)
{
    pool_target_options_init(taken);
    link__take(taken, given, sizeof *taken);
}

static int check_endpoints(struct link_check to, const struct pool_target_options *options)
{
    const char *at = (const char *)options->endpoints;
    char why[160];

    for (size_t i = 0; i < options->n_endpoints; i++) {
        const struct pool_endpoint *given = (const struct pool_endpoint *)(const void *)at;
        struct pool_endpoint endpoint;
        if (pool__endpoint_take(&endpoint, given, why, sizeof why))
            return link__refuse(to, "endpoint %zu: %s", i, why);
        at += given->size;
    }
    return 0;
}

int pool_target_options_check(const struct pool_target_options *given, char *text, size_t n)
{
    struct link_check to = {text, n};
    struct pool_target_options options;
    int error;

    pool__target_options_take(&options, given);
    if (!options.picker || link__check_size(to, "picker", options.picker->size, sizeof *options.picker))
        return options.picker ? LINKPOOL_EINVAL : link__refuse(to, "picker is NULL");
    if (!options.picker->pick)
        return link__refuse(to, "picker lacks pick");
    if (options.n_endpoints && !options.endpoints)
        return link__refuse(to, "n_endpoints is %zu and endpoints is NULL", options.n_endpoints);
    if ((error = link__check_time(to, "wait_timeout", options.wait_timeout, true)))
        return error;
    if (options.host && (error = pool_host_options_check(options.host, text, n)))
        return error;
    return check_endpoints(to, &options);
}

/* ---- the pool ---- */

/* Half the soft limit of descriptors: the other half is for the program's own. */
static unsigned default_max_links(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur / 2 > 1000000)
        return 1000000;
    return limit.rlim_cur < 2 ? 1 : (unsigned)(limit.rlim_cur / 2);
}

void pool_options_init_sized(struct pool_options *options, size_t size)
{
    struct pool_options all = {.max_links = default_max_links(),
        .max_hosts = 65536,
        .max_names = 65536,
        .max_waiting = 65536,
        .max_connecting = 256,
        .max_line = 1024,
        .max_call_bytes = 8u << 20,
        .wait_timeout = 5,
        .host_timeout = 300,
        .env = &linkpool_env_system};

    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

void pool__options_take(struct pool_options *taken, const struct pool_options *given)
{
    pool_options_init(taken);
    link__take(taken, given, sizeof *taken);
}

int pool_options_check(const struct pool_options *given, char *text, size_t n)
{
    struct link_check to = {text, n};
    struct pool_options options;
    int error;

    pool__options_take(&options, given);
    if ((error = link__check_count(to, "max_links", options.max_links, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "max_hosts", options.max_hosts, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "max_names", options.max_names, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "max_waiting", options.max_waiting, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "max_connecting", options.max_connecting, 1, UINT32_MAX / 2)) ||
        (error = link__check_count(to, "max_line", options.max_line, 1, UINT32_MAX / 2)) ||
        (error = options.max_call_bytes ? 0 : link__refuse(to, "max_call_bytes is 0; it is from 1")) ||
        (error = link__check_time(to, "wait_timeout", options.wait_timeout, false)) ||
        (error = link__check_time(to, "host_timeout", options.host_timeout, false)) ||
        (error = link__check_env(to, options.env)))
        return error;
    return options.host ? pool_host_options_check(options.host, text, n) : 0;
}
