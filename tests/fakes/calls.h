/* calls.h - calls in a world of virtual time: a protocol of whole answers, a server that is told what to answer, and
 * callers that remember what they were told.
 *
 *     struct fake_world world;
 *     fake_calls_begin(&world);             options may be changed now; the protocol is the hosts'
 *     fake_world_open(&world);
 *     struct fake_server *server = fake_server(&world, "10.0.0.1:80");
 *     struct fake_caller caller = {.call = {.to = "10.0.0.1:80"}};
 *     fake_call(&world, &caller, "text");
 *     fake_settle(&world);                  it was answered: the text comes back
 *     fake_world_end(&world);
 *
 * The protocol lends out its smallest free number, so that an answer that comes late for one would reach the next; one
 * given up keeps its number until its answer came. Its answers lie in memory that goes with the link. */
#ifndef LINKPOOL_TESTS_FAKES_CALLS_H
#define LINKPOOL_TESTS_FAKES_CALLS_H

#include "linkpool/protocol.h"
#include "tests/fakes/world.h"

enum {
    FAKE_REQUESTS = 4096 /* that a server remembers */
};

/** What the protocol does; tests change it as they go. */
struct fake_calls_ways {
    bool is_full;                /* send() has no room */
    unsigned takes;              /* and so after so many more; 0: never */
    int error;                   /* send() says so, once */
    bool dies;                   /* send() fails the link, once */
    unsigned room;               /* a link's, where it is not max_channels */
    struct link_attempt attempt; /* the last begun */
    unsigned swallowed;          /* answers to calls that were given up */
    unsigned strays;             /* answers to nobody */
};
extern struct fake_calls_ways fake_calls_ways;

/** 100 channels a link; four bytes before each text. Copy it for other numbers. */
extern const struct protocol fake_calls;

/** Room again: those that were refused are told. */
void fake_calls_let(void);
/** The peer of the last attempt takes so many channels now. */
void fake_calls_set_room(unsigned room);
/** The protocol answers the i-th channel in use by itself, be it sent or not. */
void fake_calls_deliver(unsigned i, const char *text);
/** The same as one piece, and the last. */
void fake_calls_deliver_part(unsigned i, const char *text);
/** It ends the i-th channel in use: the peer did nothing with it, or something. */
void fake_calls_end(unsigned i, bool safe_to_repeat);
/** The peer is leaving; with what `processed` denies being told so. */
void fake_calls_going(bool (*processed)(const struct protocol_channel *pc));

/** A request as it came. */
struct fake_request {
    struct testing_conn *conn; /* NULL: it is over */
    uint16_t id;
    char text[32];
};

/** A server of the protocol. */
struct fake_server {
    struct testing_peer *peer;
    bool holds;  /* it answers when the test says so, else each at once with its own text */
    bool resets; /* it resets each connection it reads from */
    unsigned n;
    struct fake_server *next; /* of all there are */
    struct fake_request requests[FAKE_REQUESTS];
};

/** A server at an address; it is freed with the process. */
struct fake_server *fake_server(struct fake_world *world, const char *address);
/** Answers the i-th request, from 0; with its own text where `text` is NULL. */
void fake_server_answer(struct fake_server *server, unsigned i, const char *text);
/** Says that nothing was done with the i-th. */
void fake_server_deny(struct fake_server *server, unsigned i);
/** Answers the i-th with an error instead, whose code is 7. */
void fake_server_err(struct fake_server *server, unsigned i, const char *words);
/** The texts of all requests in the order in which they came, with a blank between. */
const char *fake_server_heard(const struct fake_server *server);

/** A world whose hosts speak the protocol. */
void fake_calls_begin(struct fake_world *world);

/** Someone who makes a call. All zero at first; the call's in members, `done` apart, are the test's. */
struct fake_caller {
    struct pool_call call;
    struct fake_world *world;
    unsigned done;   /* times told */
    int status;      /* what calling said, then what `done` saw */
    char answer[32]; /* what `done` saw */
    double told_at;
    unsigned place;                           /* the how manieth to be told in this world, counted from 1 */
    void (*then)(struct fake_caller *caller); /* runs at the end of `done` */
};

/** Calls with this text, which must stay. */
int fake_call(struct fake_world *world, struct fake_caller *caller, const char *text);
/** The same, which must be pending, and settles. */
void fake_call_out(struct fake_world *world, struct fake_caller *caller, const char *text);
/** Asserts the outcome; told once, or as often as it was pending. */
void fake_called(const struct fake_caller *caller, int status, enum pool_fate fate);

#endif
