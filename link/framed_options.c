/* framed_options.c - the options of the framed protocol: defaults and ranges. */
#include <string.h>

#include "link/framed_link.h"
#include "link/options.h"

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    GIB = 1024 * MIB
};

void framed_options_init_sized(struct framed_options *options, size_t size)
{
    struct framed_options all = {.max_payload = MIB, .max_queue = 256 * KIB, .max_channel_queue = 64 * KIB};

    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

void framed__options_take(struct framed_options *taken, const struct framed_options *given)
{
    framed_options_init(taken);
    link__take(taken, given, sizeof *taken);
}

static int check_bytes(struct link_check to, const char *option, size_t value, size_t min, size_t max)
{
    if (value >= min && value <= max)
        return 0;
    return link__refuse(to, "%s is %zu; it is from %zu to %zu bytes", option, value, min, max);
}

int framed_options_check(const struct framed_options *given, char *text, size_t n)
{
    struct link_check to = {text, n};
    struct framed_options options;
    int error;

    framed__options_take(&options, given);
    if ((error = check_bytes(to, "token_size", options.token_size, 0, FRAMED_MAX_TOKEN)) ||
        (error = check_bytes(to, "max_payload", options.max_payload, KIB, 64 * MIB)) ||
        (error = check_bytes(to, "max_queue", options.max_queue, 4 * KIB, GIB)) ||
        (error = check_bytes(to, "max_channel_queue", options.max_channel_queue, KIB, GIB)))
        return error;
    if (options.token_size && !options.token)
        return link__refuse(to, "token is NULL and token_size %zu", options.token_size);
    return 0;
}
