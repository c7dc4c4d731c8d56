/* client.c - callers of a framed server, for tests/framed/run.py: client ADDR CALLERS CALLS LARGEST CANCEL_EVERY
 *
 * Each caller makes so many echo calls, one after the other, over the one link of a pool. Every payload is another;
 * each answer is compared. Prints what became of them in one line, and exits with 1 when an answer was wrong. */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linkpool/framed.h"
#include "linkpool/linkpool.h"

struct caller {
    struct pool_lease lease;
    unsigned number, call;
    size_t n;
    unsigned char *payload;
};

static struct {
    struct pool *pool;
    struct protocol protocol;
    struct framed_options options;
    const char *address;
    unsigned callers, calls, cancel_every, busy;
    size_t largest;
    unsigned long answers, errors, cancelled, repeated, lost, wrong, refused;
    unsigned sends;
    struct caller *doomed; /* it gives up when somebody else is answered before it */
} all;

static void begin(struct caller *caller);

static void over(struct caller *caller)
{
    free(caller->payload);
    if (!--all.busy)
        ev_break(EV_DEFAULT, EVBREAK_ALL);
}

/* "echo", who, the how manieth, and bytes that follow from these. */
static void make_payload(struct caller *caller)
{
    unsigned seed = caller->number * 7919 + caller->call * 104729;

    caller->n = 4 + 8 + (seed * 2654435761u >> 7) % (all.largest - 11);
    memcpy(caller->payload, "echo", 4);
    memcpy(caller->payload + 4, &caller->number, 4);
    memcpy(caller->payload + 8, &caller->call, 4);
    for (size_t i = 12; i < caller->n; i++)
        caller->payload[i] = (unsigned char)(seed + i * i);
}

static void next(struct caller *caller)
{
    caller->call++;
    if (caller->call < all.calls) {
        make_payload(caller);
        begin(caller);
    } else {
        over(caller);
    }
}

static void give_up(struct caller *caller)
{
    all.doomed = NULL;
    all.cancelled++;
    pool_release(&caller->lease, POOL_DISCARD);
    next(caller);
}

static struct caller *heard(struct channel *channel)
{
    struct caller *caller = channel_data(channel), *doomed = all.doomed;

    if (doomed == caller)
        all.doomed = NULL;
    else if (doomed)
        give_up(doomed);
    return caller;
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    struct caller *caller = heard(channel);

    (void)code;
    (void)words;
    (void)n;
    all.errors++;
    pool_release(&caller->lease, POOL_REUSE);
    next(caller);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct caller *caller = heard(channel);

    if (n != caller->n - 4 || memcmp(bytes, caller->payload + 4, n))
        all.wrong++;
    else
        all.answers++;
    pool_release(&caller->lease, POOL_REUSE);
    next(caller);
}

static void ask(struct caller *caller)
{
    int error = channel_send(caller->lease.channel, caller->payload, caller->n);

    if (error == LINKPOOL_EAGAIN) {
        all.refused++;
        return;
    }
    if (error) { /* lost within: on_closed() follows */
        if (error != LINKPOOL_ELOST)
            abort();
        return;
    }
    if (all.cancel_every && ++all.sends % all.cancel_every == 0 && !all.doomed)
        all.doomed = caller;
}

static void on_writable(struct channel *channel)
{
    ask(channel_data(channel));
}

static const struct channel_events events = {.message = on_message, .error = on_error, .writable = on_writable};

static void on_closed(struct pool_lease *lease)
{
    if (all.doomed == lease->data)
        all.doomed = NULL;
    if (lease->fate == POOL_NOT_SENT)
        all.repeated++;
    else
        all.lost++;
    begin(lease->data);
}

static void hold(struct caller *caller)
{
    channel_set_data(caller->lease.channel, caller);
    channel_watch(caller->lease.channel, &events, 0);
    ask(caller);
}

static void on_done(struct pool_lease *lease)
{
    char why[512];

    if (lease->status == POOL_READY) {
        hold(lease->data);
        return;
    }
    pool_explain(lease, why, sizeof why);
    fprintf(stderr, "client: %s\n", why);
    over(lease->data);
}

static void begin(struct caller *caller)
{
    caller->lease = (struct pool_lease){
        .done = on_done, .closed = on_closed, .data = caller, .flags = POOL_WAIT_FOR_READY, .timeout = 20};
    int status = pool_acquire(all.pool, all.address, &caller->lease);
    if (status < 0)
        abort();
    if (status == POOL_READY)
        hold(caller);
}

static void open_pool(void)
{
    struct pool_host_options host;
    struct pool_options options;

    framed_options_init(&all.options);
    all.options.token = "open sesame";
    all.options.token_size = 11;
    all.protocol = framed_protocol(&all.options);
    pool_host_options_init(&host);
    host.protocol = &all.protocol;
    host.max_links = 1;
    pool_options_init(&options);
    options.host = &host;
    if (!(all.pool = pool_new(EV_DEFAULT, &options)))
        abort();
}

int main(int argc, char **argv)
{
    struct caller *callers;

    if (argc != 6)
        return 2;
    all.address = argv[1];
    all.callers = all.busy = (unsigned)atoi(argv[2]);
    all.calls = (unsigned)atoi(argv[3]);
    all.largest = (size_t)atol(argv[4]);
    all.cancel_every = (unsigned)atoi(argv[5]);
    open_pool();
    callers = calloc(all.callers, sizeof *callers);
    for (unsigned i = 0; i < all.callers; i++) {
        callers[i].number = i;
        callers[i].payload = malloc(all.largest + 1);
        make_payload(&callers[i]);
        begin(&callers[i]);
    }
    ev_run(EV_DEFAULT, 0);
    printf("answers %lu errors %lu cancelled %lu repeated %lu lost %lu wrong %lu refused %lu\n", all.answers,
        all.errors, all.cancelled, all.repeated, all.lost, all.wrong, all.refused);
    pool_free(all.pool);
    free(callers);
    return all.wrong ? 1 : 0;
}
