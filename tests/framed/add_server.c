/* add_server.c - a server that adds 1 for each call id, to be killed: add_server ADDR NUMBER LEDGER [FAULT]
 *
 * A request is "add" and 8 bytes of id, big endian; its answer 8 bytes, the NUMBER of this process. What is added is in
 * the LEDGER (ledger.h) before it is answered, and stays there whatever becomes of the process. It does not look
 * whether an id was there before. Prints "listening NUMBER ADDR TIME", with the seconds of CLOCK_MONOTONIC.
 *
 * FAULT: "twice" adds each thousandth id twice, "forgets" it; "late" answers nothing for 3 seconds. */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "examples/common/acceptor.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "tests/fakes/framed_server.h"
#include "tests/framed/ledger.h"

enum {
    READ = 16384 /* what is asked in so many bytes is answered in fewer, but for the greeting */
};

struct client {
    struct framed_session *session;
    ev_io io;
    ev_timer late;
    unsigned char out[2 * READ];
    size_t n_out;
};

static unsigned char *ledger;
static unsigned char number[8];
static const char *fault = "";
static struct acceptor acceptor;

static void set64(unsigned char *at, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}

static void on_say(struct framed_session *session, const void *bytes, size_t n)
{
    struct client *client = framed_session_data(session);

    if (n > sizeof client->out - client->n_out)
        die("more to say than was asked");
    memcpy(client->out + client->n_out, bytes, n);
    client->n_out += n;
}

/* Answers go a millisecond after the adding: a kill between leaves much that is counted and not answered. They are
 * short: what the socket does not take is a fault of the test. */
static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)loop, (void)events;
    if (send(client->io.fd, client->out, client->n_out, MSG_NOSIGNAL) != (ssize_t)client->n_out &&
        errno != ECONNRESET && errno != EPIPE)
        die("a client that does not read");
    client->n_out = 0;
}

static void on_request(struct framed_session *session, uint32_t request, const void *payload, size_t n)
{
    uint64_t id;

    if (n != 11 || memcmp(payload, "add", 3) != 0 || (id = get64((const unsigned char *)payload + 3)) >= LEDGER_IDS)
        die("a request of %zu bytes that is no add", n);
    if (id % 1000 != 999 || strcmp(fault, "forgets") != 0)
        ledger[id]++;
    if (id % 1000 == 999 && strcmp(fault, "twice") == 0)
        ledger[id]++;
    framed_session_answer(session, request, number, sizeof number);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    struct client *client = io->data;
    unsigned char bytes[READ];
    ssize_t n = recv(io->fd, bytes, sizeof bytes, 0);

    (void)events;
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && framed_session_take(client->session, bytes, (size_t)n) == 0) {
        if (client->n_out > 0)
            ev_timer_start(loop, &client->late); /* it may run already */
        return;
    }
    if (n > 0)
        die("a client that makes no sense: %s", framed_session_fault(client->session));
    ev_io_stop(loop, io);
    ev_timer_stop(loop, &client->late);
    close(io->fd);
    framed_session_free(client->session);
    free(client);
}

static void on_accepted(struct acceptor *from, int fd)
{
    static struct framed_calls calls = {.say = on_say, .request = on_request, .channels = 20};
    struct client *client = calloc(1, sizeof *client);

    (void)from;
    if (client == NULL || (client->session = framed_session_new(&calls, client)) == NULL)
        die("out of memory");
    socket_no_delay(fd);
    ev_io_init(&client->io, on_readable, fd, EV_READ);
    ev_timer_init(&client->late, on_late, 0.001, 0);
    client->io.data = client->late.data = client;
    ev_io_start(EV_DEFAULT, &client->io);
}

static void announce(int fd, const char *which)
{
    char address[SOCKET_TEXT];
    struct timespec now;

    socket_name(fd, address);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("listening %s %s %.6f\n", which, address, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    fflush(stdout);
}

static void on_awake(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    acceptor_start(&acceptor, loop, *(int *)timer->data);
}

int main(int argc, char **argv)
{
    ev_timer asleep;
    int fd;

    program_name = "add_server";
    if (argc != 4 && argc != 5)
        die_usage("ADDR NUMBER LEDGER [FAULT] are expected");
    signal(SIGPIPE, SIG_IGN);
    set64(number, option_count("NUMBER", argv[2], 1, 1000000));
    ledger = ledger_open(argv[3]);
    fault = argc == 5 ? argv[4] : "";
    fd = socket_listen("ADDR", argv[1], false);
    announce(fd, argv[2]);
    acceptor.accepted = on_accepted;
    ev_timer_init(&asleep, on_awake, strcmp(fault, "late") == 0 ? 3 : 0, 0);
    asleep.data = &fd;
    ev_timer_start(EV_DEFAULT, &asleep);
    ev_run(EV_DEFAULT, 0);
    return 0;
}
