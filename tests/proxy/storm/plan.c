/* plan.c - draws by hashing (seed, number, what for); bodies are windows into one random block. */
#include "tests/proxy/storm/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK = 1 << 20,
    METHODS_ALL = 0,
    METHODS_UPLOADS = 1,
    METHODS_HEADS = 2
};

/* What a draw is for; each draws on its own, so that one more changes no other. */
enum draw {
    FOR_METHOD,
    FOR_MINOR,
    FOR_FRAMING,
    FOR_EXPECT,
    FOR_CLOSE,
    FOR_LAZY,
    FOR_GOING_ON,
    FOR_SIZE,
    FOR_PIECES,
    FOR_LEAVING,
    FOR_LEAVE_AFTER,
    FOR_COOKIE,
    FOR_BODY,
    FOR_ANSWER,
    FOR_ANSWER_SIZE,
    FOR_BEHAVIOUR = 100, /* and on: these by backend */
    FOR_ANSWER_FRAMING = 200,
    FOR_STATUS = 300,
    FOR_DELAY = 400,
    FOR_PART = 500
};

static uint64_t seed;
static char block[BLOCK + PLAN_MAX_BODY];

/* The finalizer of splitmix64: every bit of what comes in moves every bit of what goes out. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t id, unsigned what)
{
    return mix(mix(mix(seed) ^ id) ^ what);
}

/* Uniform in [0, 1). */
static double real(uint64_t id, unsigned what)
{
    return (double)(draw(id, what) >> 11) * 0x1p-53;
}

static bool happens(uint64_t id, unsigned what, double probability)
{
    return real(id, what) < probability;
}

void plan_begin(uint64_t wanted)
{
    seed = wanted;
    for (size_t i = 0; i < sizeof block; i += 8) {
        uint64_t bytes = mix(seed + i);

        memcpy(block + i, &bytes, 8);
    }
}

/* ---- a request ---- */

/* None for one in ten, else so that each order of magnitude is as likely as the next. */
static size_t draw_size(uint64_t id, unsigned what)
{
    double at = real(id, what) * 10 / 9 - 1. / 9;

    return at < 0 ? 0 : (size_t)exp(at * log(PLAN_MAX_BODY));
}

static void draw_method(struct wish *wish)
{
    double at = real(wish->id, FOR_METHOD);

    wish->method = at < 0.5 ? PLAN_GET : at < 0.6 ? PLAN_HEAD : at < 0.85 ? PLAN_POST : PLAN_PUT;
    wish->minor = happens(wish->id, FOR_MINOR, 0.03) ? 0 : 1;
    wish->has_body = wish->method == PLAN_POST || wish->method == PLAN_PUT;
    wish->body = wish->has_body ? draw_size(wish->id, FOR_SIZE) : 0;
    wish->chunked = wish->has_body && wish->minor == 1 && happens(wish->id, FOR_FRAMING, 0.4);
    wish->expect = wish->has_body && wish->minor == 1 && happens(wish->id, FOR_EXPECT, 0.1);
}

static void draw_leaving(struct wish *wish)
{
    double at = real(wish->id, FOR_LEAVING);

    wish->leaving = at < 0.03                                              ? LEAVE_WAITING
                    : at < 0.04 && wish->body > 1                          ? LEAVE_SENDING
                    : at >= 0.04 && at < 0.045                             ? LEAVE_RECEIVING
                    : at >= 0.045 && at < 0.05 && wish->method == PLAN_GET ? LEAVE_BY_RESET
                                                                           : LEAVE_NEVER;
    wish->leave_after = 0.0002 * exp(real(wish->id, FOR_LEAVE_AFTER) * log(3000)); /* to 0.6 s */
}

void plan_wish(uint64_t id, struct wish *wish)
{
    *wish = (struct wish){.id = id};
    draw_method(wish);
    draw_leaving(wish);
    wish->close = happens(id, FOR_CLOSE, 0.03);
    wish->lazy = happens(id, FOR_LAZY, 0.01);
    wish->goes_on = happens(id, FOR_GOING_ON, 0.5);
    wish->pieces = happens(id, FOR_PIECES, 0.05) ? 1 + draw(id, FOR_PIECES) % 100 : 0;
    snprintf(wish->cookie, sizeof wish->cookie, "%016" PRIx64, draw(id, FOR_COOKIE));
}

/* ---- an answer ---- */

static const struct {
    const char *name;
    unsigned weight, methods;
} behaviours[] = {
#define PLAN_ROW(upper, lower, weight, methods) {#lower, weight, METHODS_##methods},
    PLAN_BEHAVIOURS(PLAN_ROW)
#undef PLAN_ROW
};

static bool is_for(unsigned methods, const struct wish *wish)
{
    return methods == METHODS_ALL || (methods == METHODS_UPLOADS && wish->has_body) ||
           (methods == METHODS_HEADS && wish->method == PLAN_HEAD);
}

static enum plan_behaviour draw_behaviour(const struct wish *wish, unsigned backend)
{
    unsigned at = (unsigned)(real(wish->id, FOR_BEHAVIOUR + backend) * 10000);

    for (int i = 1; i < PLAN_N_BEHAVIOURS; i++) {
        if (at < behaviours[i].weight)
            return is_for(behaviours[i].methods, wish) ? (enum plan_behaviour)i : BEHAVIOUR_PLAIN;
        at -= behaviours[i].weight;
    }
    return BEHAVIOUR_PLAIN;
}

/* Where a cut could pass for the end, or the end is no boundary, it would prove nothing: those keep to the others. */
static bool may_end_by_closing(enum plan_behaviour behaviour)
{
    return behaviour == BEHAVIOUR_PLAIN || behaviour == BEHAVIOUR_SLOW || behaviour == BEHAVIOUR_PIECES ||
           behaviour == BEHAVIOUR_HINTS || behaviour == BEHAVIOUR_LATE;
}

static double draw_delay(const struct wish *wish, unsigned backend, enum plan_behaviour behaviour)
{
    double at = real(wish->id, FOR_DELAY + backend);

    return behaviour == BEHAVIOUR_SLOW         ? 0.005 + at * 0.045
           : behaviour == BEHAVIOUR_LATE       ? 0.3 + at * 1.2
           : behaviour == BEHAVIOUR_TWICE_IDLE ? 0.01 + at * 0.03
                                               : 0;
}

void plan_act(const struct wish *wish, unsigned backend, struct act *act)
{
    double framing = real(wish->id, FOR_ANSWER_FRAMING + backend);
    double status = real(wish->id, FOR_STATUS + backend);

    act->behaviour = draw_behaviour(wish, backend);
    act->framing = framing < 0.6 ? PLAN_LENGTH : framing < 0.94 ? PLAN_CHUNKED : PLAN_CLOSE;
    if (act->framing == PLAN_CLOSE && !may_end_by_closing(act->behaviour))
        act->framing = PLAN_LENGTH;
    act->status = status < 0.90 ? 200 : status < 0.93 ? 404 : status < 0.96 ? 500 : 204;
    if (act->status == 204 && act->behaviour == BEHAVIOUR_HEAD_BODY)
        act->status = 200;
    act->delay = draw_delay(wish, backend, act->behaviour);
    act->part = real(wish->id, FOR_PART + backend);
}

/* ---- names and bodies ---- */

const char *plan_method_name(enum plan_method method)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT"};

    return names[method];
}

const char *plan_behaviour_name(enum plan_behaviour behaviour)
{
    return behaviours[behaviour].name;
}

const char *plan_framing_name(enum plan_framing framing)
{
    static const char *const names[] = {"length", "chunked", "close"};

    return names[framing];
}

const char *plan_request_bytes(uint64_t id)
{
    return block + draw(id, FOR_BODY) % BLOCK;
}

const char *plan_answer_bytes(uint64_t id)
{
    return block + draw(id, FOR_ANSWER) % BLOCK;
}

size_t plan_answer_size(uint64_t id)
{
    return draw_size(id, FOR_ANSWER_SIZE);
}

size_t plan_answer_line(char line[PLAN_LINE], uint64_t id, const char *cookie, const char *taken)
{
    int n = snprintf(line, PLAN_LINE, "id %" PRIu64 " cookie %s taken %s\n", id, cookie, taken);

    return n < PLAN_LINE ? (size_t)n : PLAN_LINE - 1;
}

/* ---- digests and time ---- */

/* FNV-1a. */
void digest_begin(struct digest *digest)
{
    *digest = (struct digest){.sum = 0xcbf29ce484222325u};
}

void digest_add(struct digest *digest, const char *bytes, size_t n)
{
    uint64_t sum = digest->sum;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    digest->sum = sum;
    digest->bytes += n;
}

void digest_text(const struct digest *digest, char text[PLAN_DIGEST])
{
    snprintf(text, PLAN_DIGEST, "%" PRIu64 ":%016" PRIx64, digest->bytes, digest->sum);
}

double plan_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
