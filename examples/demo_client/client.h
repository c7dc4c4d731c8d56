/* client.h - what all slots of the demo's client share: what it was told, and what became of its requests. */
#ifndef DEMO_CLIENT_CLIENT_H
#define DEMO_CLIENT_CLIENT_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "examples/common/sockets.h"
#include "examples/demo_client/answer.h"

enum {
    MAX_BACKENDS = 16
};

struct tally_of_backend {
    char name[ANSWER_MAX_VALUE];
    uint64_t requests;
};

struct client {
    const char *to, *log;
    unsigned slots, requests; /* requests: a connection */
    double seconds, timeout, pause;
    struct ev_loop *loop;
    struct socket_address address;
    FILE *file; /* the log */
    struct slot *all;
    unsigned open; /* slots that are not done */
    bool ending;
    double started;
    ev_timer second, end;
    uint64_t connections, ok, failed;
    struct tally_of_backend backends[MAX_BACKENDS]; /* since the last line */
    uint64_t ok_before, failed_before;
};

#endif
