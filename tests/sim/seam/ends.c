/* ends.c - a far end's life: how it is connected to, what it hears and says, how it ends. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "tests/sim/seam/clock.h"
#include "tests/sim/seam/ends_internal.h"

static const double give_up_connecting = 127; /* seconds: Linux's tcp_syn_retries 6, as in the testing kit */

enum {
    PIECE = 16384
};

/* ---- one far end ---- */

static void drop_words(struct end *end)
{
    struct word *word, *next;

    DL_FOREACH_SAFE (end->words, word, next)
        free(word);
    end->words = NULL;
}

void ends__shut(struct end *end)
{
    drop_words(end);
    if (end->fd >= 0)
        close(end->fd);
    end->fd = -1;
    end->state = END_OVER;
}

static void forget(struct end *end)
{
    ends__shut(end);
    DL_DELETE(end->ends->all, end);
    free(end);
}

void ends__cut(struct end *end, enum link_reason how)
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
    ends__shut(end);
}

void ends__say(struct end *end, double due, enum link_reason how, const void *bytes, size_t n)
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
            ends__cut(end, word->end);
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
        ends__say(end, end->ends->now + peer->answer_delay, LINK_NO_REASON, bytes, n);
}

static void hear(struct end *end)
{
    char piece[PIECE];

    while (end->state == END_OPEN && !end->silent && !end->eof && end->appetite) {
        ssize_t got = recv(end->fd, piece, end->appetite < sizeof piece ? end->appetite : sizeof piece, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got > 0) {
            take(end, piece, (size_t)got);
        } else if (got == 0) { /* it has said all it will: we do the same */
            end->eof = true;
            ends__say(end, end->ends->now, LINK_CLOSED_BY_PEER, NULL, 0);
        } else {
            ends__shut(end);
        }
    }
}

/* ---- connecting ---- */

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
    DL_DELETE(end->ends->all, end); /* what is done to all is done in this order */
    DL_APPEND(end->ends->all, end);
    end->state = END_OPEN;
    end->swallows = peer->behaviour == TESTING_SILENT;
    end->appetite = peer->window;
    if (*peer->greeting && !end->swallows)
        ends__say(end, due, LINK_NO_REASON, peer->greeting, strlen(peer->greeting));
    if (peer->behaviour == TESTING_ACCEPT_AND_CLOSE)
        ends__say(end, due, LINK_CLOSED_BY_PEER, NULL, 0);
    else if (peer->behaviour == TESTING_ACCEPT_AND_RESET)
        ends__say(end, due, LINK_RESET, NULL, 0);
}

/* Closed with bytes unread: the kernel has an error for the other side, which call_getsockopt() says otherwise. */
static void fail(struct end *end, int error)
{
    end->error = error;
    ends__shut(end);
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

/* The kernel has the connection already: we take it at once, and begin with it when it is due. */
static void take_in(struct end *end)
{
    if (end->is_unix && end->state == END_COMING && end->fd < 0)
        end->fd = accept(end->peer->listener, NULL, NULL);
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
        take_in(end);
        if (end->state == END_COMING && end->due <= now)
            end->is_unix ? accepted(end) : decide(end);
        hear(end);
    }
    DL_FOREACH_SAFE (ends->all, end, after) {
        speak(end);
        next = fmin(next, next_of(end));
        if (end->near < 0 && end->state == END_OVER)
            forget(end);
    }
    return next;
}

/* ---- all of them ---- */

unsigned ends_near(const struct ends *ends)
{
    const struct end *end;
    unsigned n = 0;

    DL_FOREACH (ends->all, end)
        n += end->near >= 0;
    return n;
}

struct ends *ends_new(void)
{
    struct ends *ends = calloc(1, sizeof *ends);

    assert(ends);
    ends->now = clock_time();
    for (int i = 0; i < STAGE_PEERS; i++)
        ends->peers[i].listener = ends->peers[i].filler = -1;
    ends__env(ends);
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
