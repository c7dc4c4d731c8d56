/* ends.c - see ends.h. */
#include "tests/sim/seam/ends.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "link/address.h"
#include "tests/sim/seam/clock.h"
#include "tests/sim/seam/stage.h"

static const double give_up_connecting = 127; /* seconds: Linux's tcp_syn_retries 6, as in the testing kit */

enum {
    PIECE = 16384,
    BUFFER = 65536 /* of a pair, each way */
};

struct word { /* something to be said */
    double due;
    enum link_reason end; /* or the end, and how */
    size_t n, at;
    struct word *prev, *next;
    char bytes[];
};

struct peer {
    struct link_address address;
    enum testing_behaviour behaviour;
    bool echoes;
    char greeting[64];
    double connect_delay, answer_delay;
    size_t window, bytes;
    unsigned accepted;
    int listener, filler; /* of a unix one; -1: none */
};

struct end {
    struct ends *ends;
    struct peer *peer; /* NULL: nobody is there */
    int near, fd;      /* the library's and ours; -1: closed, or not accepted yet */
    bool is_unix, swallows, eof, silent, blocked;
    enum {
        END_NEW,
        END_COMING,
        END_OPEN,
        END_OVER
    } state;
    double started, due; /* COMING: since when, and when the next thing is decided */
    unsigned syn;
    int error; /* for SO_ERROR of a pair */
    size_t appetite;
    struct word *words;
    struct end *prev, *next;
};

struct ends {
    struct linkpool_env env;
    struct peer peers[STAGE_PEERS];
    struct end *all;
    double now;
};

static const struct linkpool_env *const real = &linkpool_env_system;

/* ---- one far end ---- */

static void drop_words(struct end *end)
{
    struct word *word, *next;

    DL_FOREACH_SAFE (end->words, word, next)
        free(word);
    end->words = NULL;
}

static void shut(struct end *end)
{
    drop_words(end);
    if (end->fd >= 0)
        close(end->fd);
    end->fd = -1;
    end->state = END_OVER;
}

static void forget(struct end *end)
{
    shut(end);
    DL_DELETE(end->ends->all, end);
    free(end);
}

static void cut(struct end *end, enum link_reason how)
{
    if (end->silent)
        return;
    if (how == LINK_TIMED_OUT) {
        drop_words(end);
        end->silent = true;
        return;
    }
    if (how != LINK_CLOSED_BY_PEER && end->near >= 0) /* unread when we close: the kernel resets */
        send(end->near, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shut(end);
}

static void add_word(struct end *end, double due, enum link_reason how, const void *bytes, size_t n)
{
    struct word *word = malloc(sizeof *word + n);

    assert(word);
    *word = (struct word){.due = due, .end = how, .n = n};
    if (n)
        memcpy(word->bytes, bytes, n);
    DL_APPEND(end->words, word);
}

/* Bytes. false: there is no room for all of them. */
static bool say_word(struct end *end, struct word *word)
{
    ssize_t sent = send(end->fd, word->bytes + word->at, word->n - word->at, MSG_NOSIGNAL | MSG_DONTWAIT);

    word->at = sent >= 0 ? word->at + (size_t)sent : errno == EAGAIN ? word->at : word->n;
    if (word->at < word->n)
        return false;
    DL_DELETE(end->words, word);
    free(word);
    return true;
}

static void speak(struct end *end)
{
    struct word *word;

    end->blocked = false;
    while (end->state == END_OPEN && !end->blocked && (word = end->words) && word->due <= end->ends->now) {
        if (word->end)
            cut(end, word->end);
        else
            end->blocked = !say_word(end, word);
    }
}

static void take(struct end *end, const char *bytes, size_t n)
{
    struct peer *peer = end->peer;

    peer->bytes += n;
    if (end->appetite != SIZE_MAX)
        end->appetite -= n;
    if (peer->echoes && !end->swallows)
        add_word(end, end->ends->now + peer->answer_delay, LINK_NO_REASON, bytes, n);
}

static void hear(struct end *end)
{
    char piece[PIECE];

    while (end->state == END_OPEN && !end->silent && !end->eof && end->appetite) {
        ssize_t got =
            recv(end->fd, piece, end->appetite < sizeof piece ? end->appetite : sizeof piece, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got > 0) {
            take(end, piece, (size_t)got);
        } else if (got == 0) { /* it has said all it will: we do the same */
            end->eof = true;
            add_word(end, end->ends->now, LINK_CLOSED_BY_PEER, NULL, 0);
        } else {
            shut(end);
        }
    }
}

/* ---- connecting ---- */

/* Its sending side is full until somebody reads here. */
static void fill(const struct end *end)
{
    static const char filling[4096];

    while (send(end->near, filling, sizeof filling, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
}

static void drain(const struct end *end)
{
    char piece[PIECE];

    while (recv(end->fd, piece, sizeof piece, MSG_DONTWAIT) > 0)
        ;
}

static void accepted(struct end *end)
{
    struct peer *peer = end->peer;
    double due = end->ends->now + peer->answer_delay;

    peer->accepted++;
    end->state = END_OPEN;
    end->swallows = peer->behaviour == TESTING_SILENT;
    end->appetite = peer->window;
    if (*peer->greeting && !end->swallows)
        add_word(end, due, LINK_NO_REASON, peer->greeting, strlen(peer->greeting));
    if (peer->behaviour == TESTING_ACCEPT_AND_CLOSE)
        add_word(end, due, LINK_CLOSED_BY_PEER, NULL, 0);
    else if (peer->behaviour == TESTING_ACCEPT_AND_RESET)
        add_word(end, due, LINK_RESET, NULL, 0);
}

static void fail(struct end *end, int error)
{
    drain(end);
    end->error = error;
    end->state = END_OVER;
}

static void send_syn_again(struct end *end)
{
    double after = (double)((2u << end->syn++) - 1); /* 1, 3, 7, ... since the start */

    if (end->ends->now - end->started >= give_up_connecting)
        fail(end, ETIMEDOUT);
    else if (after >= give_up_connecting)
        end->due = end->started + give_up_connecting;
    else
        end->due = end->started + after + end->peer->connect_delay;
}

static void decide(struct end *end)
{
    switch (end->peer ? end->peer->behaviour : TESTING_REFUSE) {
    case TESTING_REFUSE:
        fail(end, ECONNREFUSED);
        break;
    case TESTING_UNREACHABLE:
    case TESTING_NO_HOST:
        fail(end, EHOSTUNREACH);
        break;
    case TESTING_BLACK_HOLE:
        send_syn_again(end);
        break;
    default:
        drain(end);
        accepted(end);
    }
}

static void let_in(struct end *end)
{
    end->fd = accept(end->peer->listener, NULL, NULL);
    if (end->fd >= 0)
        accepted(end);
    else
        shut(end);
}

static double next_of(const struct end *end)
{
    if (end->state == END_COMING)
        return end->due;
    return end->state == END_OPEN && end->words && !end->blocked ? end->words->due : INFINITY;
}

double ends_move(void *data, double now)
{
    struct ends *ends = data;
    struct end *end, *after;
    double next = INFINITY;

    ends->now = now;
    DL_FOREACH_SAFE (ends->all, end, after) {
        if (end->state == END_COMING && end->due <= now)
            end->is_unix ? let_in(end) : decide(end);
        hear(end);
        speak(end);
        next = fmin(next, next_of(end));
        if (end->near < 0 && end->state == END_OVER)
            forget(end);
    }
    return next;
}

/* ---- the env ---- */

static int refuse(int error)
{
    errno = error;
    return -1;
}

static struct end *end_at(const struct ends *ends, int near)
{
    struct end *end;

    DL_FOREACH (ends->all, end)
        if (end->near == near)
            return end;
    return NULL;
}

static struct peer *peer_at(struct ends *ends, const struct sockaddr *address, socklen_t size)
{
    for (int i = 0; i < STAGE_PEERS; i++) {
        struct peer *peer = &ends->peers[i];
        if (peer->address.size == size && !memcmp(&peer->address.name, address, size))
            return peer;
    }
    return NULL;
}

static int call_socket(void *data, int domain, int type, int protocol)
{
    struct ends *ends = data;
    struct end *end = calloc(1, sizeof *end);
    int pair[2] = {-1, -1}, size = BUFFER;

    assert(end);
    if (domain == AF_UNIX)
        pair[0] = real->socket(NULL, domain, type, protocol);
    else if (!socketpair(AF_UNIX, type, 0, pair)) /* as asked for: a pair that blocks would hang in what follows */
        setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (pair[0] < 0) {
        free(end);
        return -1;
    }
    *end = (struct end){.ends = ends, .near = pair[0], .fd = pair[1], .is_unix = domain == AF_UNIX};
    DL_APPEND(ends->all, end);
    return pair[0];
}

static int connect_pair(struct end *end)
{
    if (end->peer && end->peer->behaviour == TESTING_UNREACHABLE)
        return refuse(ENETUNREACH);
    fill(end);
    end->state = END_COMING;
    return refuse(EINPROGRESS);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    struct end *end = end_at(data, fd);
    int result;

    assert(end && end->state == END_NEW);
    end->peer = peer_at(data, address, size);
    end->started = clock_time();
    end->due = end->started + (end->peer ? end->peer->connect_delay : 0);
    if (!end->is_unix)
        return connect_pair(end);
    result = real->connect(NULL, fd, address, size);
    if (!result) {
        assert(end->peer);
        end->state = END_COMING;
    }
    return result;
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return end_at(data, fd)->is_unix ? real->bind(NULL, fd, address, size) : 0;
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    if (level == IPPROTO_TCP && !end_at(data, fd)->is_unix)
        return 0;
    return real->setsockopt(NULL, fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    struct end *end = end_at(data, fd);
    int result = real->getsockopt(NULL, fd, level, name, value, size);

    if (!result && level == SOL_SOCKET && name == SO_ERROR && end->error) {
        memcpy(value, &end->error, sizeof end->error);
        end->error = 0;
    }
    return result;
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    (void)data;
    return real->recvmsg(NULL, fd, message, flags);
}

/* Over TCP a reset is told to who writes, too, before the broken pipe. */
static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = real->sendmsg(NULL, fd, message, flags);
    int error = 0;
    socklen_t size = sizeof error;

    if (sent < 0 && errno == EPIPE && !end_at(data, fd)->is_unix &&
        !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && error)
        return refuse(error);
    return sent;
}

static int call_shutdown(void *data, int fd, int how)
{
    (void)data;
    return real->shutdown(NULL, fd, how);
}

static int call_close(void *data, int fd)
{
    struct end *end = end_at(data, fd);

    assert(end); /* else it was closed before, or never ours */
    end->near = -1;
    if (end->state == END_NEW || (end->state == END_COMING && !end->is_unix))
        shut(end); /* nobody there has heard of it */
    return real->close(NULL, fd);
}

/* ---- what peers are told ---- */

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
            add_word(end, ends->now, LINK_NO_REASON, text, strlen(text));
}

void ends_cut(struct ends *ends, unsigned i, enum link_reason how)
{
    struct end *end;

    DL_FOREACH (ends->all, end) {
        if (end->peer != &ends->peers[i])
            continue;
        if (end->state == END_COMING && end->is_unix)
            let_in(end);
        if (end->state == END_OPEN)
            cut(end, how);
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

unsigned ends_near(const struct ends *ends)
{
    const struct end *end;
    unsigned n = 0;

    DL_FOREACH (ends->all, end)
        n += end->near >= 0;
    return n;
}

const struct linkpool_env *ends_env(const struct ends *ends)
{
    return &ends->env;
}

struct ends *ends_new(void)
{
    struct ends *ends = calloc(1, sizeof *ends);

    assert(ends);
    ends->now = clock_time();
    for (int i = 0; i < STAGE_PEERS; i++)
        ends->peers[i].listener = ends->peers[i].filler = -1;
    ends->env = linkpool_env_system;
    ends->env.data = ends;
    ends->env.socket = call_socket;
    ends->env.connect = call_connect;
    ends->env.bind = call_bind;
    ends->env.setsockopt = call_setsockopt;
    ends->env.getsockopt = call_getsockopt;
    ends->env.recvmsg = call_recvmsg;
    ends->env.sendmsg = call_sendmsg;
    ends->env.shutdown = call_shutdown;
    ends->env.close = call_close;
    return ends;
}

void ends_free(struct ends *ends)
{
    while (ends->all)
        forget(ends->all);
    for (int i = 0; i < STAGE_PEERS; i++) {
        if (ends->peers[i].filler >= 0)
            close(ends->peers[i].filler);
        if (ends->peers[i].listener >= 0)
            close(ends->peers[i].listener);
    }
    free(ends);
}
