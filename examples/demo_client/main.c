/* main.c - demo_client: asks an HTTP server, through whatever stands between, and writes down what became of each
 * request.
 *
 * The log has a line a request (ok ID BACKEND TIME BODY, failed ID BACKEND TIME WHY) and one a connection (connection
 * BACKEND SENT RECEIVED). ID is sent as X-Request-Id and as id= in the URL, where logs show it. BACKEND is the header
 * X-Backend of the answer, - where it has none; a request without an answer has that of the answer before. TIME is wall
 * time in seconds, BODY the bytes of the answer's body. Of an answer that is not a 200 WHY is the status and the body's
 * first line. Each second a line goes to stdout. */
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/demo_client/client.h"
#include "examples/demo_client/slot.h"

/* ---- the clock ---- */

static void on_second(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)events;
    printf("%.0f %" PRIu64 " %" PRIu64, ev_now(loop) - client->started, client->ok - client->ok_before,
        client->failed - client->failed_before);
    for (int i = 0; i < MAX_BACKENDS && client->backends[i].name[0] != '\0'; i++) {
        printf(" %s %" PRIu64, client->backends[i].name, client->backends[i].requests);
        client->backends[i].requests = 0;
    }
    printf("\n");
    fflush(stdout);
    client->ok_before = client->ok;
    client->failed_before = client->failed;
}

/* Requests under way are finished, then each slot is done; what hangs is a failure by its time-out. */
static void on_end(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)loop, (void)events;
    client->ending = true;
}

/* ---- the program ---- */

static const char help[] = /* */
    "Usage: demo_client --to ADDR [OPTION]...\n"
    "Asks an HTTP server and writes down what became of each request.\n"
    "\n"
    "  --to ADDR        the server\n"
    "  --seconds S      for so long (10)\n"
    "  --connections N  at once (32)\n"
    "  --requests N     a connection, then it is closed (50)\n"
    "  --pause S        from an answer to the next request, by chance up to half more or less (0)\n"
    "  --timeout S      a request without an answer by then has failed (5)\n"
    "  --log FILE       a line a request and a connection (none)\n"
    "  --help, --version\n"
    "\n"
    "Each second a line: seconds, requests answered, failed, then each backend's name and its requests.\n";

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"seconds", required_argument, NULL, 's'},
    {"connections", required_argument, NULL, 'c'},
    {"requests", required_argument, NULL, 'r'},
    {"pause", required_argument, NULL, 'p'},
    {"timeout", required_argument, NULL, 'm'},
    {"log", required_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static void take_options(struct client *client, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 't': client->to = optarg; break;
        case 's': client->seconds = option_seconds("--seconds", optarg, 0.1, 86400); break;
        case 'c': client->slots = option_count("--connections", optarg, 1, 100000); break;
        case 'r': client->requests = option_count("--requests", optarg, 1, 1000000000); break;
        case 'p': client->pause = option_seconds("--pause", optarg, 0, 3600); break;
        case 'm': client->timeout = option_seconds("--timeout", optarg, 0.01, 86400); break;
        case 'l': client->log = optarg; break;
        case 'h': print_help(help);
        case 'v': print_version();
        default: exit(2); /* getopt_long() has named it */
        }
    /* clang-format on */
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
    if (client->to == NULL)
        die_usage("--to ADDR is missing");
}

static void prepare(struct client *client)
{
    const char *why;

    if (socket_parse(client->to, &client->address, &why) < 0)
        die_usage("--to: '%s': %s", client->to, why);
    client->file = fopen(client->log == NULL ? "/dev/null" : client->log, "we");
    if (client->file == NULL)
        die("--log: %s: %s", client->log, strerror(errno));
    client->loop = ev_default_loop(0);
    if (client->loop == NULL)
        die("no event loop");
    client->started = ev_now(client->loop);
    ev_timer_init(&client->second, on_second, 1, 1);
    ev_timer_init(&client->end, on_end, client->seconds, 0);
    client->second.data = client->end.data = client;
    ev_timer_start(client->loop, &client->second);
    ev_timer_start(client->loop, &client->end);
}

int main(int argc, char **argv)
{
    static struct client client = {.seconds = 10, .slots = 32, .requests = 50, .timeout = 5};
    struct loop_end end;

    program_name = argv[0] = "demo_client";
    take_options(&client, argc, argv);
    prepare(&client);
    loop_end_on_signals(client.loop, &end);
    slots_start(&client);
    ev_run(client.loop, 0);
    if (fclose(client.file) != 0)
        die("--log: %s: %s", client.log, strerror(errno));
    slots_free(&client);
    ev_loop_destroy(client.loop);
    return 0;
}
