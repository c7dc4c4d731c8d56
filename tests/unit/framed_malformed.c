/* framed_malformed.c - what a peer may not say: a table. Each ends the link with words that name it. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "link/framed_wire.h"
#include "tests/fakes/framed_stage.h"
#include "tests/fakes/owner.h"

#define ACK    "\0\0\0\1\0\x10\0\0\0\0\0\5"
#define U32(n) "\0\0\0" n

enum when {
    BEFORE,  /* instead of HELLO_ACK */
    AFTER,   /* once the link is READY; nothing was asked */
    ASKED,   /* one request is under way: 1 */
    ANSWERED /* and that was answered */
};

static const struct {
    enum when when;
    uint32_t n; /* as the header says; the payload has `has` */
    uint8_t type, flags;
    uint16_t reserved;
    uint32_t id;
    const char *payload;
    size_t has;
    enum link_reason reason;
    const char *why;
} table[] = {
    /* clang-format off */
    {BEFORE, 12, FRAMED_HELLO_ACK, 0, 0, 0, "\0\0\0\2\0\x10\0\0\0\0\0\5", 12,
        LINK_PROTOCOL_ERROR, "HELLO_ACK with version 2; ours is 1"},
    {BEFORE, 12, FRAMED_HELLO_ACK, 0, 0, 0, "\0\0\0\0\0\x10\0\0\0\0\0\5", 12,
        LINK_PROTOCOL_ERROR, "HELLO_ACK with version 0; ours is 1"},
    {BEFORE, 12, FRAMED_HELLO_ACK, 0, 0, 1, ACK, 12, LINK_PROTOCOL_ERROR, "HELLO_ACK with the id 1"},
    {BEFORE, 11, FRAMED_HELLO_ACK, 0, 0, 0, ACK, 11, LINK_PROTOCOL_ERROR, "HELLO_ACK of 11 bytes; it is from 12 to 12"},
    {BEFORE, 12, FRAMED_HELLO_ACK, 4, 0, 0, ACK, 12, LINK_PROTOCOL_ERROR, "HELLO_ACK with unknown flags 0x04"},
    {BEFORE, 12, FRAMED_HELLO_ACK, 0, 9, 0, ACK, 12, LINK_PROTOCOL_ERROR, "HELLO_ACK with reserved bits 0x0009"},
    {BEFORE, 4,  FRAMED_LIMIT,     0, 0, 0, U32("\5"), 4, LINK_PROTOCOL_ERROR, "LIMIT out of place"},
    {BEFORE, 8,  FRAMED_PING,      0, 0, 0, "12345678", 8, LINK_PROTOCOL_ERROR, "PING out of place"},
    {BEFORE, 1<<20, FRAMED_ANSWER, 0, 0, 1, "", 0, LINK_PROTOCOL_ERROR, "ANSWER out of place"},
    {BEFORE, 8,  FRAMED_GOAWAY,    0, 0, 0, U32("\0") U32("\0"), 8, LINK_CLOSED_BY_PEER, "the peer is leaving"},
    {BEFORE, 13, FRAMED_GOAWAY,    0, 0, 0, U32("\0") U32("\6") "no\n\x7f\xc3", 13,
        LINK_HANDSHAKE_FAILED, "the peer would not have us: 6: no..."},
    {BEFORE, 8,  FRAMED_GOAWAY,    0, 0, 0, U32("\0") U32("\6"), 8,
        LINK_HANDSHAKE_FAILED, "the peer would not have us: 6"},
    /* HTTP/1.1 400 */
    {BEFORE, 0x48545450, 0x2f, 0x31, 0x2e31, 0x20343030, "", 0,
        LINK_PROTOCOL_ERROR, "a frame of unknown type 47"},
    {AFTER, 12, FRAMED_HELLO_ACK, 0, 0, 0, ACK, 12, LINK_PROTOCOL_ERROR, "HELLO_ACK out of place"},
    {AFTER, 8,  FRAMED_HELLO,     0, 0, 0, U32("\1") U32("\1"), 8, LINK_PROTOCOL_ERROR, "HELLO out of place"},
    {AFTER, 0,  FRAMED_REQUEST,   0, 0, 1, "", 0, LINK_PROTOCOL_ERROR, "REQUEST out of place"},
    {AFTER, 0,  FRAMED_CANCEL,    0, 0, 1, "", 0, LINK_PROTOCOL_ERROR, "CANCEL out of place"},
    {AFTER, 0,  11,               0, 0, 0, "", 0, LINK_PROTOCOL_ERROR, "a frame of unknown type 11"},
    {AFTER, 0,  0,                0, 0, 0, "", 0, LINK_PROTOCOL_ERROR, "a frame of unknown type 0"},
    {AFTER, 8,  FRAMED_PONG,      0, 0, 0, "\0\0\0\0\0\0\0\1", 8, LINK_PROTOCOL_ERROR, "a PONG never asked for"},
    {AFTER, 8,  FRAMED_PING,      0, 0, 7, "12345678", 8, LINK_PROTOCOL_ERROR, "PING with the id 7"},
    {AFTER, 7,  FRAMED_PING,      0, 0, 0, "1234567", 7, LINK_PROTOCOL_ERROR, "PING of 7 bytes; it is from 8 to 8"},
    {AFTER, 5,  FRAMED_LIMIT,     0, 0, 0, "12345", 5, LINK_PROTOCOL_ERROR, "LIMIT of 5 bytes; it is from 4 to 4"},
    {AFTER, 4,  FRAMED_LIMIT,     1, 0, 0, "1234", 4, LINK_PROTOCOL_ERROR, "LIMIT with unknown flags 0x01"},
    {AFTER, 7,  FRAMED_GOAWAY,    0, 0, 0, "1234567", 7,
        LINK_PROTOCOL_ERROR, "GOAWAY of 7 bytes; it is from 8 to 1032"},
    {AFTER, 0,  FRAMED_ANSWER,    0, 0, 1, "", 0,
        LINK_PROTOCOL_ERROR, "ANSWER to the request 1; the last one sent is 0"},
    {ASKED, 0,  FRAMED_ANSWER,    0, 0, 2, "", 0,
        LINK_PROTOCOL_ERROR, "ANSWER to the request 2; the last one sent is 1"},
    {ASKED, 4,  FRAMED_ERROR,     0, 0, 2, U32("\5"), 4,
        LINK_PROTOCOL_ERROR, "ERROR to the request 2; the last one sent is 1"},
    {ASKED, 0,  FRAMED_ANSWER,    0, 0, 0, "", 0, LINK_PROTOCOL_ERROR, "ANSWER with the id 0"},
    {ASKED, 4,  FRAMED_ERROR,     0, 0, 1, U32("\0"), 4, LINK_PROTOCOL_ERROR, "ERROR with the code 0"},
    {ASKED, 3,  FRAMED_ERROR,     0, 0, 1, "123", 3, LINK_PROTOCOL_ERROR, "ERROR of 3 bytes; it is from 4 to 1028"},
    {ASKED, (1 << 20) + 1, FRAMED_ANSWER, 0, 0, 1, "", 0,
        LINK_PROTOCOL_ERROR, "ANSWER of 1048577 bytes; it is from 0 to 1048576"},
    {ANSWERED, 0, FRAMED_ANSWER,  0, 0, 1, "", 0,
        LINK_PROTOCOL_ERROR, "ANSWER to the request 1, which was answered before"},
    {ANSWERED, 4, FRAMED_ERROR,   0, 0, 1, U32("\2"), 4,
        LINK_PROTOCOL_ERROR, "ERROR to the request 1, which was answered before"},
    /* clang-format on */
};

static void play(size_t i)
{
    struct framed_peer server;
    struct fake_owner owner;
    const char *text;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    framed_peer_begin(&server, owner.peer);
    server.calls.silent = table[i].when == BEFORE;
    server.holds = table[i].when == ASKED;
    owner.options.protocol = &protocol_framed;
    fake_owner_start(&owner);
    fake_owner_settle(&owner);
    if (table[i].when != BEFORE)
        fake_owner_until(&owner, LINK_READY, 1);
    if (table[i].when >= ASKED)
        cr_assert(eq(int, channel_send(owner.channel, "x", 1), 0));
    fake_owner_settle(&owner);
    framed_session_frame(server.session, table[i].n, table[i].type, table[i].flags, table[i].reserved, table[i].id,
        table[i].payload, table[i].has);
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF), "row %zu", i);
    cr_assert(eq(int, link_last_reason(owner.link, NULL, &text), table[i].reason), "row %zu", i);
    cr_assert(eq(str, (char *)text, (char *)table[i].why));
    link_stop(owner.link);
    fake_owner_settle(&owner);
    fake_owner_end(&owner);
}

Test(framed_malformed, each_ends_the_link_with_words_that_name_it)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        play(i);
}

/* What is right is taken at the same places: so it is the fault alone that ends the link. */
Test(framed_malformed, what_is_right_is_taken)
{
    struct framed_peer server;
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    framed_peer_begin(&server, owner.peer);
    server.holds = true;
    owner.options.protocol = &protocol_framed;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    cr_assert(eq(int, channel_send(owner.channel, "x", 1), 0));
    fake_owner_settle(&owner);
    framed_session_limit(server.session, 7);
    framed_session_ping(server.session, "12345678");
    framed_session_answer(server.session, 1, "y", 1);
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, fake_link_stats(owner.link).room, 7));
    cr_assert(eq(uint, server.n_pongs, 1));
    framed_session_goaway(server.session, 1, 0, "");
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
    link_stop(owner.link);
    fake_owner_settle(&owner);
    fake_owner_end(&owner);
}
