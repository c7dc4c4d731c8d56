/* ends_peers.c - what the peers at the far ends are told, and what they have seen. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "tests/sim/seam/ends_internal.h"

static int open_door(struct peer *peer)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

    error = bind(fd, &peer->address.name.any, peer->address.size);
    assert(fd >= 0 && !error);
    if (peer->behaviour != TESTING_REFUSE && peer->behaviour != TESTING_UNREACHABLE &&
        peer->behaviour != TESTING_NO_HOST)
        error = listen(fd, peer->behaviour == TESTING_BLACK_HOLE ? 0 : 4096);
    assert(!error);
    return fd;
}

static void set_door(struct peer *peer)
{
    if (peer->address.name.any.sa_family != AF_UNIX)
        return;
    if (peer->filler >= 0)
        close(peer->filler);
    if (peer->listener >= 0)
        close(peer->listener);
    peer->filler = -1;
    peer->listener = open_door(peer);
    if (peer->behaviour == TESTING_BLACK_HOLE) { /* with a backlog of 0 one waits, and the next is told to try again */
        peer->filler = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(peer->filler, &peer->address.name.any, peer->address.size);
    }
}

void ends_peer(struct ends *ends, unsigned i, const char *address, enum testing_behaviour behaviour)
{
    struct peer *peer = &ends->peers[i];
    int error;

    *peer = (struct peer){.behaviour = behaviour, .window = SIZE_MAX, .listener = -1, .filler = -1};
    error = link_address_parse(address, strlen(address), &peer->address, NULL, 0);
    assert(!error);
    (void)error;
    set_door(peer);
}

void ends_behave(struct ends *ends, unsigned i, enum testing_behaviour behaviour)
{
    ends->peers[i].behaviour = behaviour;
    set_door(&ends->peers[i]);
}

void ends_echo(struct ends *ends, unsigned i, bool on)
{
    ends->peers[i].echoes = on;
}

void ends_greet(struct ends *ends, unsigned i, const char *text)
{
    assert(strlen(text) < sizeof ends->peers[i].greeting);
    strcpy(ends->peers[i].greeting, text);
}

void ends_delay(struct ends *ends, unsigned i, double connect, double answer)
{
    ends->peers[i].connect_delay = connect;
    ends->peers[i].answer_delay = answer;
}

void ends_say(struct ends *ends, unsigned i, const char *text)
{
    struct end *end;

    DL_FOREACH (ends->all, end)
        if (end->peer == &ends->peers[i] && end->state == END_OPEN && !end->silent)
            ends__say(end, ends->now, LINK_NO_REASON, text, strlen(text));
}

void ends_cut(struct ends *ends, unsigned i, enum link_reason how)
{
    struct end *end;

    DL_FOREACH (ends->all, end) {
        if (end->peer != &ends->peers[i])
            continue;
        if (end->state == END_OPEN || (end->state == END_COMING && end->is_unix && end->fd >= 0))
            ends__cut(end, how);
    }
}

void ends_window(struct ends *ends, unsigned i, size_t bytes)
{
    struct end *end;

    ends->peers[i].window = bytes;
    DL_FOREACH (ends->all, end)
        if (end->peer == &ends->peers[i])
            end->appetite = bytes;
}

unsigned ends_accepted(const struct ends *ends, unsigned i)
{
    return ends->peers[i].accepted;
}

unsigned ends_open(const struct ends *ends, unsigned i)
{
    const struct end *end;
    unsigned n = 0;

    DL_FOREACH (ends->all, end)
        n += end->peer == &ends->peers[i] && end->state == END_OPEN && !end->silent;
    return n;
}

size_t ends_bytes(const struct ends *ends, unsigned i)
{
    return ends->peers[i].bytes;
}
