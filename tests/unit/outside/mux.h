/* mux.h - a shared protocol outside the tree: questions and answers of one byte, many at a time on a link.
 *
 * All that is said is frames of three bytes: a kind, a channel, a value. */
#ifndef OUTSIDE_MUX_H
#define OUTSIDE_MUX_H

#include <linkpool/linkpool.h>

enum {
    MUX_FRAME = 3,
    MUX_ROOM = 'R',   /* from the server, the first thing said: so many channels may be open from now on */
    MUX_ASK = 'Q',    /* from the client: a question on a channel */
    MUX_ANSWER = 'A', /* from the server */
    MUX_PING = 'P',   /* from the client */
    MUX_PONG = 'p',   /* from the server */
    MUX_NOTICE = 'N', /* from the server, at any time: of interest to nobody */
    MUX_GOING = 'G',  /* from the server: no new channels, please */
    MUX_LEAVE = 'L'   /* from the client: it closes now */
};

/* What it met, in all links of a protocol object. */
struct mux_counts {
    unsigned notices, idle_notices, rooms, opened, closed, ended;
};

/* Room for three channels until the server says otherwise. `config` of a copy: a struct mux_counts. */
extern const struct protocol mux;

#endif
