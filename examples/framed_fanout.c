/* framed_fanout.c - asks many framed servers (framed_server.c) the same at once, and prints who has answered what, and
 * why the others have not.
 *
 *     framed_fanout --wanted 2 --timeout 0.2 'echo hello' 10.0.0.1:7000 10.0.0.2:7000 10.0.0.3:7000
 *
 * An answer is printed when it comes; in the end each server without one is named with its reason. All are heard, as
 * far as there is time; with --wanted the rest is given up as soon as enough have answered, or cannot any more. */
#include <ev.h>
#include <getopt.h>
#include <linkpool/linkpool.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/options.h"

static struct {
    struct ev_loop *loop;
    struct pool *pool;
    struct protocol protocol;
    struct framed_options framed;
    struct pool_fanout group;
    unsigned retries, flags;
} asking;

static const char help[] = /* */
    "Usage: framed_fanout [OPTION]... REQUEST ADDR...\n"
    "Asks framed servers the same at once; prints each answer, or why there is none.\n"
    "\n"
    "  --wanted K          so many answers are enough, and once they cannot come it ends too (each is heard)\n"
    "  --timeout S         until what there is is printed (1)\n"
    "  --token TEXT        said to each server in the handshake\n"
    "  --retries N         tries more of what was not sent, or not processed (0)\n"
    "  --safe-to-repeat    ... and of what was lost on the way: it may be done twice\n"
    "  --wait              wait for servers that are down, until time is up\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 enough have answered (without --wanted: all), 1 they have not, 2 the command line is wrong.\n";

/* ---- what is printed ---- */

/* Bytes of a peer go to a terminal: what is no plain character is written as \xNN. */
static void print_bytes(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] >= ' ' && bytes[i] < 127 && bytes[i] != '\\')
            putchar(bytes[i]);
        else
            printf("\\x%02x", bytes[i]);
}

/* What kept it from being answered, as precisely as the call knows. */
static const char *cause(const struct pool_call *call)
{
    static const char *const stages[] = {[POOL_STAGE_NONE] = "no answer in time",
        [POOL_STAGE_LINE] = "no free channel in time",
        [POOL_STAGE_BACKOFF] = "not up again in time",
        [POOL_STAGE_CONNECT] = "not connected in time",
        [POOL_STAGE_HANDSHAKE] = "no handshake in time"};

    if (call->status == LINKPOOL_ETIMEDOUT)
        return stages[call->stage];
    if (call->status == LINKPOOL_ECANCELLED)
        return "given up";
    return call->reason != LINK_NO_REASON ? link_reason_text(call->reason) : linkpool_strerror(call->status);
}

static void print_missing(const struct pool_call *call)
{
    const char *fate = call->fate == POOL_NOT_SENT ? "not sent" : "may have been done";

    printf("%s: missing: %s", call->to, cause(call));
    if (call->status == LINKPOOL_ETIMEDOUT && call->reason != LINK_NO_REASON)
        printf(" (%s)", link_reason_text(call->reason));
    printf("; %s", fate);
    if (call->attempts > 1)
        printf(" in %u attempts", call->attempts);
    putchar('\n');
}

/* An answer, or a server's words instead of one, is borrowed until this returns. */
static void on_answer(struct pool_call *call)
{
    if (call->status != 0 && call->status != LINKPOOL_EPEER)
        return; /* on_group() names it */
    printf("%s: ", call->to);
    if (call->status == LINKPOOL_EPEER)
        printf("missing: error %u: ", (unsigned)call->code);
    print_bytes(call->answer, call->answer_size);
    putchar('\n');
    fflush(stdout);
}

static void on_group(struct pool_fanout *group)
{
    for (size_t i = 0; i < group->n; i++)
        if (group->calls[i].status != 0 && group->calls[i].status != LINKPOOL_EPEER)
            print_missing(&group->calls[i]);
    printf("%zu of %zu\n", group->answered, group->n);
    ev_break(asking.loop, EVBREAK_ALL);
}

/* ---- the command line ---- */

static void take_token(const char *text)
{
    char why[256];

    asking.framed.token = text;
    asking.framed.token_size = strlen(text);
    if (framed_options_check(&asking.framed, why, sizeof why) < 0)
        die_usage("--token: %s", why);
}

static void take_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"wanted", required_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 't'},
        {"token", required_argument, NULL, 'k'},
        {"retries", required_argument, NULL, 'r'},
        {"safe-to-repeat", no_argument, NULL, 's'},
        {"wait", no_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 'w': asking.group.wanted = option_count("--wanted", optarg, 1, UINT32_MAX); break;
        case 't': asking.group.timeout = option_seconds("--timeout", optarg, 0.001, 3600); break;
        case 'k': take_token(optarg); break;
        case 'r': asking.retries = option_count("--retries", optarg, 0, 100); break;
        case 's': asking.flags |= POOL_CALL_SAFE_TO_REPEAT; break;
        case 'a': asking.flags |= POOL_CALL_WAIT_FOR_READY; break;
        case 'h': print_help(help);
        case 'v': print_version();
        default: exit(2); /* getopt_long() has named it */
        }
    /* clang-format on */
    if (argc - optind < 2)
        die_usage("a request and at least one address are expected");
}

/* The group's deadline is all there is: a call has none of its own. */
static void make_calls(const char *request, char **addresses, size_t n)
{
    char why[256];

    if (asking.group.wanted > n)
        die_usage("--wanted: %zu of %zu addresses cannot be", asking.group.wanted, n);
    asking.group.calls = calloc(n, sizeof *asking.group.calls);
    if (asking.group.calls == NULL)
        die("out of memory");
    for (size_t i = 0; i < n; i++) {
        if (link_address_check(addresses[i], why, sizeof why) < 0)
            die_usage("'%s': %s", addresses[i], why);
        asking.group.calls[i] = (struct pool_call){.to = addresses[i],
            .request = request,
            .request_size = strlen(request),
            .done = on_answer,
            .timeout = INFINITY,
            .flags = asking.flags,
            .retries = asking.retries};
    }
    asking.group.n = n;
    asking.group.flags = asking.group.wanted > 0 ? 0 : POOL_FANOUT_HEAR_ALL;
    asking.group.done = on_group;
}

static void open_pool(void)
{
    struct pool_host_options host;
    struct pool_options options;

    asking.protocol = framed_protocol(&asking.framed);
    pool_host_options_init(&host);
    host.protocol = &asking.protocol;
    pool_options_init(&options);
    options.host = &host;
    asking.loop = ev_default_loop(0);
    asking.pool = asking.loop != NULL ? pool_new(asking.loop, &options) : NULL;
    if (asking.pool == NULL)
        die("no pool");
}

int main(int argc, char **argv)
{
    int error;

    program_name = argv[0] = "framed_fanout";
    asking.group.timeout = 1;
    framed_options_init(&asking.framed);
    take_options(argc, argv);
    make_calls(argv[optind], argv + optind + 1, (size_t)(argc - optind - 1));
    open_pool();
    error = pool_fanout(asking.pool, &asking.group);
    if (error < 0)
        die("%s", linkpool_strerror(error));
    ev_run(asking.loop, 0);
    pool_free(asking.pool);
    free(asking.group.calls);
    ev_loop_destroy(asking.loop);
    return asking.group.status == 0 ? 0 : 1;
}
