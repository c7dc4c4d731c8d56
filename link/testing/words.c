/* words.c - what a peer says on a connection: in order, each word not before its time, and maybe a few bytes at a time.
 *
 * Nothing goes out within the call that asks for it: the connection's timer says what is due. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

struct testing__word {
    enum link_reason end; /* LINK_NO_REASON: bytes; else the connection's end, and how */
    double due;
    size_t n, at;
    struct testing__word *prev, *next;
    unsigned char bytes[];
};

static double now(const struct testing_conn *conn)
{
    return *conn->peer->heap->now;
}

void testing__words_drop(struct testing_conn *conn)
{
    struct testing__word *word, *next;

    DL_FOREACH_SAFE (conn->words, word, next)
        free(word);
    conn->words = NULL;
}

/** Says what is due of the first word. Returns whether to go on with the next. */
static bool say_word(struct testing_conn *conn, struct testing__word *word)
{
    struct testing_peer *peer = conn->peer;
    size_t n = word->n - word->at, moved;

    if (peer->drip && n > peer->drip)
        n = peer->drip;
    if (n > peer->cut_after - conn->sent)
        n = (size_t)(peer->cut_after - conn->sent);
    moved = n ? peer->ground->deliver(conn, word->bytes + word->at, n) : 0;
    word->at += moved;
    conn->sent += moved;
    conn->blocked = moved < n;
    if (peer->drip)
        conn->next_word = now(conn) + peer->drip_interval;
    if (word->at == word->n) {
        DL_DELETE(conn->words, word);
        free(word);
    }
    return !conn->blocked;
}

/** Says all that is due, and sets the timer for what is not. */
void testing__speak(struct testing_conn *conn)
{
    struct testing__word *word;

    while ((word = conn->words) && !conn->blocked) {
        double due = word->due > conn->next_word ? word->due : conn->next_word;
        if (due > now(conn)) {
            testing__arm(conn->peer->heap, &conn->timer, due);
            return;
        }
        if (word->end != LINK_NO_REASON) {
            testing__conn_cut(conn, word->end);
            return;
        }
        if (conn->sent < conn->peer->cut_after && !say_word(conn, word))
            return;
        if (conn->sent >= conn->peer->cut_after) {
            testing__conn_cut(conn, conn->peer->cut_how);
            return;
        }
    }
}

void testing__conn_room(struct testing_conn *conn)
{
    conn->blocked = false;
    if (conn->state == CONN_OPEN)
        testing__speak(conn);
}

static int add_word(struct testing_conn *conn, enum link_reason end, double due, const void *bytes, size_t n)
{
    struct testing__word *word;

    if (conn->state != CONN_OPEN)
        return LINKPOOL_ESTATE;
    word = malloc(sizeof *word + n);
    if (!word)
        return LINKPOOL_ENOMEM;
    *word = (struct testing__word){.end = end, .due = due, .n = n};
    if (n)
        memcpy(word->bytes, bytes, n);
    DL_APPEND(conn->words, word);
    if (conn->words == word && !conn->blocked) /* always by the timer: nothing goes out within a call */
        testing__arm(conn->peer->heap, &conn->timer, due > conn->next_word ? due : conn->next_word);
    return 0;
}

int testing__conn_say(struct testing_conn *conn, double due, const void *bytes, size_t n)
{
    return n ? add_word(conn, LINK_NO_REASON, due, bytes, n) : 0;
}

int testing__conn_say_end(struct testing_conn *conn, double due, enum link_reason how)
{
    return add_word(conn, how, due, NULL, 0);
}

int testing_conn_send(struct testing_conn *conn, const void *bytes, size_t n)
{
    return testing_conn_send_after(conn, 0, bytes, n);
}

int testing_conn_send_after(struct testing_conn *conn, double delay, const void *bytes, size_t n)
{
    if (conn->state != CONN_OPEN)
        return LINKPOOL_ESTATE;
    return testing__conn_say(conn, now(conn) + delay, bytes, n);
}

void testing_conn_close(struct testing_conn *conn)
{
    if (testing__conn_say_end(conn, now(conn), LINK_CLOSED_BY_PEER) == LINKPOOL_ENOMEM)
        testing__conn_cut(conn, LINK_RESET);
}
