/* script.c - answers composed, doubled, cut short and spoilt. */
#include "tests/proxy/storm/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/options.h"

enum {
    STRAY = 500000000 /* added to an id: nobody's */
};

static void make_room(struct script *script, size_t more)
{
    if (script->n + more <= script->room)
        return;
    script->room = 2 * (script->n + more);
    script->bytes = realloc(script->bytes, script->room);
    if (script->bytes == NULL)
        die("out of memory");
}

static void add(struct script *script, const char *bytes, size_t n)
{
    make_room(script, n);
    memcpy(script->bytes + script->n, bytes, n);
    script->n += n;
}

__attribute__((format(printf, 2, 3))) static void add_text(struct script *script, const char *format, ...)
{
    char text[512];
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n >= (int)sizeof text)
        die("a text is too long: %s", text);
    add(script, text, (size_t)n);
}

/* ---- one answer ---- */

static const char *reason_of(unsigned status)
{
    return status == 200 ? "OK" : status == 204 ? "No Content" : status == 404 ? "Not Found" : "Internal Server Error";
}

static void add_head(struct script *script, const struct asked *asked, size_t body)
{
    const struct act *act = asked->act;

    add_text(script, "HTTP/1.1 %u %s\r\nX-Backend: %s\r\nX-Id: %" PRIu64 "\r\n", act->status, reason_of(act->status),
        asked->backend, asked->wish->id);
    add_text(script, "X-Request-Id: %s\r\nSet-Cookie: c=%s; Path=/\r\n", asked->request_id, asked->cookie);
    add_text(script, "X-Taken: %s\r\nX-Plan: %s/%s\r\n", asked->taken, plan_behaviour_name(act->behaviour),
        plan_framing_name(act->framing));
    if (act->status != 204 && act->framing == PLAN_LENGTH)
        add_text(script, "Content-Length: %zu\r\n", body);
    if (act->status != 204 && act->framing == PLAN_CHUNKED)
        add_text(script, "Transfer-Encoding: chunked\r\n");
    if (act->behaviour == BEHAVIOUR_LAST_SAID || act->behaviour == BEHAVIOUR_EARLY_CLOSE)
        add_text(script, "Connection: close\r\n");
    add_text(script, "\r\n");
}

static void add_chunks(struct script *script, const char *bytes, size_t n, size_t each)
{
    for (size_t sent = 0; sent < n; sent += each) {
        size_t part = n - sent < each ? n - sent : each;

        add_text(script, "%zx\r\n", part);
        add(script, bytes + sent, part);
        add_text(script, "\r\n");
    }
}

static void add_answer(struct script *script, const struct asked *asked)
{
    uint64_t id = asked->wish->id;
    char line[PLAN_LINE];
    size_t line_n = plan_answer_line(line, id, asked->cookie, asked->taken);
    size_t filler = plan_answer_size(id);

    add_head(script, asked, line_n + filler);
    if ((asked->wish->method == PLAN_HEAD && asked->act->behaviour != BEHAVIOUR_HEAD_BODY) || asked->act->status == 204)
        return;
    if (asked->act->framing != PLAN_CHUNKED) {
        add(script, line, line_n);
        add(script, plan_answer_bytes(id), filler);
        return;
    }
    add_chunks(script, line, line_n, line_n);
    add_chunks(script, plan_answer_bytes(id), filler, filler / 20 + 1 + id % 8000);
    add_text(script, "0\r\n\r\n");
}

/* Whole, right, and nobody's. */
static void add_stray(struct script *script, const struct asked *asked)
{
    struct act act = {.framing = PLAN_LENGTH, .status = 200};
    struct wish wish;
    char id[24];

    plan_wish(asked->wish->id + STRAY, &wish);
    while (plan_answer_size(wish.id) > 1000) /* so that one write takes it */
        plan_wish(wish.id + STRAY, &wish);
    wish.method = PLAN_GET;
    snprintf(id, sizeof id, "%" PRIu64, wish.id);
    add_answer(script, &(struct asked){&wish, &act, asked->backend, id, wish.cookie, "stray"});
}

/* ---- no answer ---- */

/* Kinds of what no proxy may pass on; the last begins well. */
static void spoil(struct script *script, const struct asked *asked)
{
    static const char *const heads[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "X-Id : 1\r\nContent-Length: 0\r\n\r\n",
        "X-Id: 1\nContent-Length: 0\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 0\r\n folded: 1\r\n\r\n",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    };
    size_t n = sizeof heads / sizeof heads[0];
    size_t kind = (size_t)(asked->act->part * (double)(n + 2));

    if (kind < n) {
        add_text(script, "HTTP/1.1 200 OK\r\n%s", heads[kind]);
    } else if (kind == n || asked->act->framing != PLAN_CHUNKED) {
        add_text(script, "this is no answer\r\n\r\n");
    } else {
        add_answer(script, asked);
        if (script->n > 5 && memcmp(script->bytes + script->n - 5, "0\r\n\r\n", 5) == 0)
            memcpy(script->bytes + script->n - 5, "0x\r\n\r", 5);
        else
            add_text(script, "this is no answer\r\n\r\n");
    }
}

/* ---- behaviours ---- */

static void shorten(struct script *script, double part)
{
    script->n = 1 + (size_t)(part * (double)(script->n - 2));
}

static void write_twice(struct script *script, const struct asked *asked)
{
    size_t first = script->n;

    if (asked->act->behaviour == BEHAVIOUR_TWICE_IDLE) {
        script->stray_after = asked->act->delay;
        return;
    }
    add_stray(script, asked);
    script->strays = true;
    if (asked->act->behaviour == BEHAVIOUR_TWICE_BEHIND)
        script->stop = first;
    if (asked->act->behaviour == BEHAVIOUR_TWICE_ACROSS) {
        script->stop = first - 1;
        script->pause = 0.002;
    }
}

/* What is sent, where it is not simply the answer. */
static void change(struct script *script, const struct asked *asked)
{
    const struct act *act = asked->act;

    switch (act->behaviour) {
    case BEHAVIOUR_SLOW:
    case BEHAVIOUR_LATE:
        script->pause = act->delay;
        break;
    case BEHAVIOUR_PIECES:
        script->piece = 1 + (size_t)(act->part * 7);
        break;
    case BEHAVIOUR_TWICE:
    case BEHAVIOUR_TWICE_ACROSS:
    case BEHAVIOUR_TWICE_BEHIND:
    case BEHAVIOUR_TWICE_IDLE:
        write_twice(script, asked);
        break;
    case BEHAVIOUR_STALL_INSIDE:
    case BEHAVIOUR_CUT:
    case BEHAVIOUR_RESET_INSIDE:
    case BEHAVIOUR_EXIT_INSIDE:
        shorten(script, act->part);
        break;
    case BEHAVIOUR_STALL:
    case BEHAVIOUR_CLOSE:
    case BEHAVIOUR_RESET:
    case BEHAVIOUR_RESET_EARLY:
    case BEHAVIOUR_EXIT:
        script->n = 0;
        break;
    default:
        break;
    }
}

static enum script_then then_of(const struct asked *asked)
{
    switch (asked->act->behaviour) {
    case BEHAVIOUR_STALL:
    case BEHAVIOUR_STALL_INSIDE:
        return THEN_HANG;
    case BEHAVIOUR_EXIT:
    case BEHAVIOUR_EXIT_INSIDE:
        return THEN_EXIT;
    case BEHAVIOUR_RESET:
    case BEHAVIOUR_RESET_INSIDE:
    case BEHAVIOUR_RESET_EARLY:
        return THEN_RESET;
    case BEHAVIOUR_CLOSE:
    case BEHAVIOUR_CUT:
    case BEHAVIOUR_LAST_SAID:
    case BEHAVIOUR_LAST_UNSAID:
    case BEHAVIOUR_EARLY_CLOSE:
        return THEN_CLOSE;
    default:
        return asked->act->framing == PLAN_CLOSE ? THEN_CLOSE : THEN_READ;
    }
}

static void empty(struct script *script)
{
    *script = (struct script){.bytes = script->bytes, .room = script->room};
}

void script_write(struct script *script, const struct asked *asked)
{
    empty(script);
    if (asked->act->behaviour == BEHAVIOUR_HINTS) {
        add_text(script, "HTTP/1.1 100 Continue\r\n\r\n");
        add_text(script, "HTTP/1.1 103 Early Hints\r\nLink: </%" PRIu64 ">\r\n\r\n", asked->wish->id);
    }
    if (asked->act->behaviour == BEHAVIOUR_BROKEN)
        spoil(script, asked);
    else
        add_answer(script, asked);
    change(script, asked);
    script->then = then_of(asked);
}

void script_write_stray(struct script *script, const struct asked *asked)
{
    empty(script);
    add_stray(script, asked);
    script->strays = true;
    script->then = THEN_READ;
}

void script_free(struct script *script)
{
    free(script->bytes);
    script->bytes = NULL;
}
