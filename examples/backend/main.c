/* main.c - backend: a small HTTP/1.1 server for demos and tests, told on its command line to be slow, to fail, to
 * close, to reset. It counts requests by id, and logs each id with write(2), so that kill -9 loses none. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "examples/backend/connection.h"
#include "examples/backend/server.h"
#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"

enum {
    MAX_BODY = 1 << 30
};

static const char help[] = /* */
    "Usage: backend [OPTION]...\n"
    "A small HTTP/1.1 server for demos and tests.\n"
    "\n"
    "  --listen ADDR    where (127.0.0.1:0: a port the system picks); printed as 'listening on ADDR'\n"
    "  --name TEXT      sent in the header X-Backend (backend)\n"
    "  --log FILE       append each request's id, a line each, before it is answered\n"
    "  --body N         bytes of an answer (13)\n"
    "  --delay S        answer so many seconds late\n"
    "  --fail-every N   each Nth request gets a 500\n"
    "  --close-every N  after each Nth answer the connection is closed without notice\n"
    "  --drop-every N   at each Nth request the connection is closed without an answer\n"
    "  --reset-every N  at each Nth request the connection is reset without an answer\n"
    "  --help, --version\n"
    "\n"
    "A request's id is its header X-Request-Id, or id= in its URL. An answer's X-Times says how often the id came.\n";

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"name", required_argument, NULL, 'n'},
    {"log", required_argument, NULL, 'o'},
    {"body", required_argument, NULL, 'b'},
    {"delay", required_argument, NULL, 'd'},
    {"fail-every", required_argument, NULL, 'f'},
    {"close-every", required_argument, NULL, 'c'},
    {"drop-every", required_argument, NULL, 'p'},
    {"reset-every", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static const char *take_name(const char *text)
{
    if (strlen(text) > 64 || strpbrk(text, "\r\n") != NULL)
        die_usage("--name: at most 64 bytes on one line");
    return text;
}

static void take_option(struct settings *settings, int option)
{
    /* clang-format off */
    switch (option) {
    case 'l': settings->listen = optarg; break;
    case 'n': settings->name = take_name(optarg); break;
    case 'o': settings->log = optarg; break;
    case 'b': settings->body = option_count("--body", optarg, 0, MAX_BODY); break;
    case 'd': settings->delay = option_seconds("--delay", optarg, 0, 3600); break;
    case 'f': settings->fail_every = option_count("--fail-every", optarg, 1, UINT32_MAX); break;
    case 'c': settings->close_every = option_count("--close-every", optarg, 1, UINT32_MAX); break;
    case 'p': settings->drop_every = option_count("--drop-every", optarg, 1, UINT32_MAX); break;
    case 'r': settings->reset_every = option_count("--reset-every", optarg, 1, UINT32_MAX); break;
    case 'h': print_help(help);
    case 'v': print_version();
    default: exit(2); /* getopt_long() has named it */
    }
    /* clang-format on */
}

static void take_options(struct settings *settings, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        take_option(settings, option);
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
}

static int open_log(const char *path)
{
    int fd;

    if (path == NULL)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        die("--log: %s: %s", path, strerror(errno));
    return fd;
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    connection_new(acceptor->data, fd);
}

static void start(struct server *server)
{
    int fd = socket_listen("--listen", server->settings.listen, false);

    memset(server->filler, '.', sizeof server->filler);
    server->log = open_log(server->settings.log);
    socket_announce("listening", fd);
    server->acceptor.accepted = on_accepted;
    server->acceptor.data = server;
    acceptor_start(&server->acceptor, server->loop, fd);
}

int main(int argc, char **argv)
{
    static struct server server = {.settings = {.listen = "127.0.0.1:0", .name = "backend", .body = 13}};
    struct loop_end end;

    program_name = argv[0] = "backend";
    take_options(&server.settings, argc, argv);
    server.loop = ev_default_loop(0);
    if (server.loop == NULL)
        die("no event loop");
    loop_end_on_signals(server.loop, &end);
    start(&server);
    ev_run(server.loop, 0);
    acceptor_stop(&server.acceptor);
    connections_end(&server);
    socket_remove_file(server.settings.listen);
    tally_clear(&server.ids);
    ev_loop_destroy(server.loop);
    return 0;
}
