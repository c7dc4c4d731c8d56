/* server.h - what the backend is told on its command line, and what its connections share. */
#ifndef BACKEND_SERVER_H
#define BACKEND_SERVER_H

#include <ev.h>
#include <stdint.h>

#include "examples/common/acceptor.h"
#include "examples/common/tally.h"

struct settings {
    const char *listen, *name, *log;
    double delay;                                              /* seconds */
    unsigned fail_every, close_every, drop_every, reset_every; /* 0: never */
    unsigned body;                                             /* bytes */
};

struct server {
    struct settings settings;
    struct ev_loop *loop;
    struct acceptor acceptor;
    struct connection *connections;
    struct tally ids;
    uint64_t requests;
    int log;            /* -1: none */
    char filler[65536]; /* what bodies are made of */
};

#endif
