/* world.c - what goes wrong outside: peers that refuse, stall, cut and crash; a system without memory, descriptors or
 * mercy; a clock that leaps. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/testing/testing_internal.h"
#include "tests/sim/peers.h"

static void name_peer(struct peer *peer, unsigned i)
{
    switch (i % 8) {
    case 5:
        snprintf(peer->address, sizeof peer->address, "[fd00::%x]:80", i + 1);
        break;
    case 6:
        snprintf(peer->address, sizeof peer->address, "unix:/run/%u", i);
        break;
    case 7:
        snprintf(peer->address, sizeof peer->address, "unix:@%u", i);
        break;
    default:
        snprintf(peer->address, sizeof peer->address, "10.0.%u.%u:80", i / 100, 1 + i % 100);
        break;
    }
}

static void name_key(struct sim *s, unsigned k)
{
    struct key *key = &s->keys[k];
    unsigned kind = below(s, 8);

    key->address = k < s->p.n_addresses ? k : below(s, s->p.n_addresses);
    if (k >= s->p.n_addresses)
        snprintf(key->tag, sizeof key->tag, "tag-%u.", k);
    key->kind = kind < 4 ? KIND_RAW : kind == 4 ? KIND_ONE_WAY : kind == 5 ? KIND_SESSION : KIND_STREAM;
    if (s->p.n_callers && once_in(s, 2))
        key->kind = once_in(s, 6) ? KIND_PINGED : KIND_FRAMED;
    key->variant = once_in(s, 2) ? 0 : 1 + (int)below(s, 2);
}

void sim__world(struct sim *s)
{
    unsigned hostile = s->p.hostility;

    s->t = testing_new(s->seed);
    s->p.rooms = sim__size(s, 1, 32);
    for (unsigned i = 0; i < s->p.n_addresses; i++) {
        name_peer(&s->peers[i], i);
        peers__start(s, i);
        if (once_in(s, 4))
            s->peers[i].late = sim__spread(s, 0.0001, 0.5);
        s->peers[i].odd = s->p.n_callers && hostile && once_in(s, 2);
        s->peers[i].denies = s->peers[i].odd && once_in(s, 6);
    }
    for (unsigned k = 0; k < s->p.n_keys; k++)
        name_key(s, k);
    testing_early_alarms(s->t, once_in(s, 2));
    testing_shuffle(s->t, hostile && once_in(s, 2));
    testing_short_writes(s->t, hostile && once_in(s, 3));
    s->p.send_buffer = once_in(s, 4) ? sim__size(s, 1, 64) : 0;
    if (s->p.n_callers && !s->p.send_buffer && once_in(s, 2))
        s->p.send_buffer = sim__size(s, 100, 4000);
    if (s->p.send_buffer)
        testing_send_buffer(s->t, s->p.send_buffer);
}

void sim__world_end(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_addresses; i++)
        if (s->peers[i].peer)
            peers__crash(&s->peers[i]);
    testing_free(s->t);
    s->t = NULL;
}

static unsigned number(const char *text, int base)
{
    unsigned n = 0;

    for (; *text && strchr("0123456789abcdef", *text); text++)
        n = n * (unsigned)base + (unsigned)(strchr("0123456789abcdef", *text) - "0123456789abcdef");
    return n;
}

/* The number of the peer that name_peer() gave this address. Asked for each host in each turn: none is looked for. */
static unsigned peer_of(const char *address)
{
    if (*address == '[')
        return number(address + 7, 16) - 1;
    if (*address == 'u')
        return number(address + (address[5] == '@' ? 6 : 10), 10);
    return 100 * number(address + 5, 10) + number(strchr(address + 5, '.') + 1, 10) - 1;
}

/* Which key a host is of: by its tag, else by its address; the kind of its protocol needs no look, a key has one. */
int sim__key_of(const struct sim *s, const struct pool_host *host)
{
    const char *address = pool_host_address(host), *bytes = host->hh.key;
    unsigned k = 0;

    for (size_t i = 0; i + 4 < host->hh.keylen; i++)
        if (!memcmp(bytes + i, "tag-", 4))
            return sscanf(bytes + i, "tag-%u.", &k) == 1 ? (int)k : -1;
    k = peer_of(address);
    return k < s->p.n_addresses && !strcmp(s->peers[k].address, address) ? (int)k : -1;
}

/* ---- peers ---- */

/* As late as the library waits, to the moment: answer and time-out meet. */
static double lateness(struct sim *s, double connect_timeout)
{
    return once_in(s, 3) ? connect_timeout : sim__spread(s, 0.0001, 2);
}

static void slow_down(struct sim *s, struct peer *peer)
{
    double connect = once_in(s, 2) ? 0 : lateness(s, s->host[0].connect_timeout);
    double spread = once_in(s, 2) ? 0 : unit(s);

    testing_peer_delay(peer->peer, connect, 0);
    testing_peer_spread(peer->peer, spread);
    peer->late = once_in(s, 3) ? 0 : lateness(s, s->host[below(s, 3)].connect_timeout);
}

static void behave_otherwise(struct sim *s, struct peer *peer)
{
    bool well = once_in(s, 2);
    unsigned behaviour = below(s, 8);

    testing_peer_behave(peer->peer, well ? TESTING_ACCEPT : (enum testing_behaviour)behaviour);
    peer->refuses = !well && once_in(s, 6);
    peer->mute = !well && once_in(s, 6);
    peer->odd = s->p.n_callers && !well && !once_in(s, 3);
    peer->denies = peer->odd && once_in(s, 3);
}

static void clog_up(struct sim *s, struct peer *peer)
{
    size_t window = peer->clogged ? SIZE_MAX : below(s, 40);

    if (peer->clogged && s->n_holding)
        s->rare.n[RARE_THAW]++;
    if (peer->clogged)
        peer->thawed_at = testing_now(s->t);
    peer->clogged = !peer->clogged;
    testing_peer_window(peer->peer, window);
}

static void drip(struct sim *s, struct peer *peer)
{
    size_t bytes = below(s, 4);

    if (peer->drips)
        peer->thawed_at = testing_now(s->t);
    peer->drips = bytes;
    peer->dripped = peer->dripped || bytes;
    testing_peer_drip(peer->peer, bytes, 0.0005);
}

static enum link_reason how_to_end(struct sim *s)
{
    static const enum link_reason how[] = {LINK_CLOSED_BY_PEER, LINK_RESET, LINK_TIMED_OUT};

    return how[below(s, 3)];
}

static void cut(struct sim *s, struct peer *peer)
{
    enum link_reason how = how_to_end(s);
    size_t after = sim__size(s, 1, 2000) - 1;

    if (once_in(s, 3)) {
        testing_peer_cut_after(peer->peer, once_in(s, 2) ? SIZE_MAX : after, how);
        return;
    }
    if (how == LINK_TIMED_OUT && s->n_holding)
        s->rare.n[RARE_HALF_OPEN]++;
    if (once_in(s, 2))
        testing_peer_cut(peer->peer, how);
    else
        peers__cut_some(s, peer, how);
}

static void narrow(struct sim *s, struct peer *peer)
{
    if (once_in(s, 2))
        testing_peer_accept_rate(peer->peer, once_in(s, 2) ? 0 : sim__spread(s, 5, 2000));
    else
        testing_peer_backlog(peer->peer, once_in(s, 2) ? 4096 : 1 + below(s, 4));
}

static void trouble_peer(struct sim *s)
{
    unsigned i = below(s, s->p.n_addresses), what = below(s, 16);
    struct peer *peer = &s->peers[i];

    if (!peer->peer) {
        peers__start(s, i); /* with a window of its own, and no manners but the best */
        peer->clogged = peer->drips = false;
        return;
    }
    switch (what) {
    case 0:
        peers__crash(peer);
        break;
    case 1:
    case 2:
        cut(s, peer);
        break;
    case 3:
        peer->wrongs++; /* on a framed link */
        testing_peer_say(peer->peer, "!", 1);
        break;
    case 4:
        peer->wrongs++;
        testing_peer_greet(peer->peer, "!!", below(s, 3));
        break;
    case 5:
        drip(s, peer);
        break;
    case 6:
    case 7:
        clog_up(s, peer);
        break;
    case 8:
        narrow(s, peer);
        break;
    case 9:
    case 10:
        slow_down(s, peer);
        break;
    case 11:
    case 12:
    case 13:
        peers__speak(s, peer);
        break;
    default:
        behave_otherwise(s, peer);
        break;
    }
}

/* ---- the system ---- */

static void trouble_calls(struct sim *s)
{
    static const int errors[] = {ENOMEM, ENOBUFS, EMFILE, ENFILE, EINTR, EAGAIN, ECONNRESET, EPIPE, ETIMEDOUT, EACCES};
    enum testing_call call = (enum testing_call)below(s, TESTING_CALLS);
    int error = errors[below(s, sizeof errors / sizeof *errors)];
    unsigned nth = 1 + below(s, 4);
    bool all = once_in(s, 6) && error != EAGAIN && error != EINTR; /* "again" for ever is no system's answer */

    testing_fail_call(s->t, call, once_in(s, 3) ? 0 : nth, error, all);
}

static void trouble_system(struct sim *s)
{
    unsigned what = below(s, 3);

    if (what == 0 && s->p.system_fails) {
        trouble_calls(s);
    } else if (what == 1 && s->p.memory_fails) {
        unsigned nth = below(s, 8);
        testing_fail_allocation(s->t, nth, once_in(s, 5));
    } else if (what == 2 && s->p.descriptors_fail) {
        unsigned n = testing_open_descriptors(s->t);
        testing_limit_descriptors(s->t, once_in(s, 2) ? UINT_MAX : once_in(s, 2) ? n : below(s, n + 4));
    }
}

/* Has nothing come for it, as its socket knows? */
bool sim__is_quiet(const struct sim *s, const struct link *link)
{
    const struct testing__socket *socket = testing__socket_at(s->t, link->transport.fd);

    return socket->state == SOCKET_UP && !socket->in.n && !socket->in_ended && !socket->error;
}

/* What is under way at a peer goes on. */
void sim__go_on(struct sim *s)
{
    struct peer *peer = &s->peers[below(s, s->p.n_addresses)];

    if (peer->peer)
        peers__go_on(s, peer);
}

void sim__trouble(struct sim *s)
{
    s->trouble_turn = s->turns;
    if (once_in(s, 4))
        trouble_system(s);
    else
        trouble_peer(s);
}

/* A process that was stopped, or a machine that slept: all that was due meanwhile is due at once. */
double sim__jump(struct sim *s)
{
    double leap = once_in(s, 2) ? 3600 : sim__spread(s, 0.01, 3600);

    s->jumped_at = s->t->now;
    s->t->now += leap;
    s->jumped_to = s->t->now;
    return leap;
}

/* ---- the faults stop ---- */

static void calm_peer(struct sim *s, unsigned i)
{
    struct peer *peer = &s->peers[i];

    if (!peer->peer)
        peers__start(s, i);
    testing_peer_behave(peer->peer, TESTING_ACCEPT);
    testing_peer_delay(peer->peer, 0, 0);
    testing_peer_drip(peer->peer, 0, 0);
    testing_peer_greet(peer->peer, NULL, 0);
    testing_peer_cut_after(peer->peer, SIZE_MAX, LINK_RESET);
    testing_peer_window(peer->peer, SIZE_MAX);
    peer->thawed_at = testing_now(s->t);
    testing_peer_backlog(peer->peer, 4096);
    testing_peer_accept_rate(peer->peer, 0);
    peer->late = 0;
    peer->refuses = peer->mute = peer->clogged = peer->drips = peer->odd = peer->denies = false;
    peers__calm(s, peer);
}

void sim__calm_world(struct sim *s)
{
    testing_fail_allocation(s->t, 0, false);
    testing_limit_descriptors(s->t, UINT_MAX);
    for (int call = 0; call < TESTING_CALLS; call++)
        testing_fail_call(s->t, (enum testing_call)call, 0, 0, false);
    for (unsigned i = 0; i < s->p.n_addresses; i++)
        calm_peer(s, i);
}
