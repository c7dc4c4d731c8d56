/* options.h - what lbproxy is told on its command line. */
#ifndef LBPROXY_OPTIONS_H
#define LBPROXY_OPTIONS_H

struct mode;
struct pool_picker;

enum {
    MAX_BACKENDS = 256,
    MAX_THREADS = 256
};

struct options {
    const char *listen;
    const char *backends[MAX_BACKENDS]; /* each another place */
    unsigned n_backends;
    const struct pool_picker *policy;
    const struct mode *mode;
    unsigned threads;
    unsigned max_clients, max_links, max_waiting; /* of the process: at least one a thread */
    unsigned max_header;                          /* bytes */
    double connect_timeout;                       /* seconds, as all that follow */
    double header_timeout, body_timeout, answer_timeout, keepalive_timeout;
    double idle_timeout; /* 0: never */
    double drain_timeout;
    const char *access_log; /* a file, or "-"; NULL: none */
    const char *status;     /* NULL: none */
};

/** Reads the command line. Anything wrong ends the program with a line that names the option. */
void options_read(struct options *options, int argc, char **argv);

/** Thread `i`'s share of a bound of the process. */
unsigned options_share(const struct options *options, unsigned total, unsigned i);

#endif
