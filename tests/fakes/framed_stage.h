/* framed_stage.h - a framed server as a fake peer, and callers of it, for the tests of framed links.
 *
 *     struct framed_stage stage;
 *     framed_stage_begin(&stage);      options, host options and the server's numbers may be changed now
 *     framed_stage_open(&stage);       one link at most, so that all callers share it
 *     framed_call(&stage, &caller, "question");
 *     fake_settle(&stage.world);
 *     framed_stage_end(&stage); */
#ifndef LINKPOOL_TESTS_FAKES_FRAMED_STAGE_H
#define LINKPOOL_TESTS_FAKES_FRAMED_STAGE_H

#include "linkpool/framed.h"
#include "tests/fakes/framed_server.h"
#include "tests/fakes/world.h"

enum {
    FRAMED_NOTES = 256
};

/** What a server heard. Requests are answered with themselves, unless it holds them. */
struct framed_peer {
    struct testing_peer *peer;
    struct framed_calls calls;      /* 100 channels at first */
    struct framed_session *session; /* of the newest connection; NULL: over */
    bool holds;                     /* requests are noted alone */
    bool turns_away;                /* whoever says HELLO */
    struct {
        uint32_t id;
        size_t n;
        char text[24]; /* how it begins */
    } asked[FRAMED_NOTES];
    unsigned n_asked, n_cancelled, n_pongs, n_goaways, n_hellos;
    uint32_t cancelled, goaway_code; /* the last one */
    char token[64];
    char fault[80];
    char order[FRAMED_NOTES]; /* what came: q a request, c a cancel, p a pong, g a GOAWAY */
};

struct framed_stage {
    struct fake_world world;
    struct framed_options options;
    struct protocol protocol;
    struct framed_peer server;
};

/** Someone who asks. All zero at first. */
struct framed_caller {
    struct fake_user user;
    unsigned answers, errors, writables;
    char answer[64];     /* how the last one began */
    size_t n;            /* its bytes */
    uint32_t code;       /* of the last error */
    const char *again;   /* sent in the next `writable`, or `message`; NULL: nothing */
    int sent;            /* what that said */
    bool releases;       /* gives the channel back once it is answered */
    unsigned *clock, at; /* the how manieth to be told of room */
};

/** Lets a peer be a framed server. */
void framed_peer_begin(struct framed_peer *server, struct testing_peer *peer);
/** It says these bytes on its newest connection. */
void framed_peer_say(struct framed_peer *server, const void *bytes, size_t n);

/** Its newest connection. */
struct testing_conn *framed_peer_connection(const struct framed_peer *server);

void framed_stage_begin(struct framed_stage *stage);
void framed_stage_open(struct framed_stage *stage);
void framed_stage_end(struct framed_stage *stage);

/** Holds a channel, and listens. */
void framed_hold(struct framed_stage *stage, struct framed_caller *caller);
/** The same, and asks; what channel_send() said. */
int framed_call(struct framed_stage *stage, struct framed_caller *caller, const char *question);
int framed_send(struct framed_caller *caller, const void *bytes, size_t n);

/** The one link of the stage. */
const struct link *framed_link_of(struct framed_stage *stage);
struct link_stats framed_stats(struct framed_stage *stage);
/** Each byte of these is its number, modulo 251. */
void framed_fill(unsigned char *bytes, size_t n);

extern const char framed_address[];

#endif
