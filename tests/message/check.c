/* check.c - see check.h. */
#include "tests/message/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/message/compose.h"
#include "tests/message/oracle.h"

static const struct cuts whole = {0};

/* The same bytes, cut another way, are the same message. */
static void check_cuts(const struct outcome *outcome, const char *bytes, size_t n, size_t max, const struct cuts *cuts)
{
    static struct outcome other; /* it is large */
    struct bytes a, b;

    outcome_take(&other, outcome->kind, bytes, n, max, cuts);
    outcome_show(outcome, &a);
    outcome_show(&other, &b);
    MUST(strcmp(a.at, b.at) == 0 && a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
    MUST(outcome->end != MESSAGE_WHOLE || outcome->used == other.used);
    free(a.at);
    free(b.at);
    outcome_free(&other);
}

enum {
    ADDED = 5 /* fields, at most */
};

static void check_composed(const struct outcome *outcome, unsigned minor)
{
    static struct outcome again;
    struct bytes wire, anew;

    if (outcome->head.n_fields + ADDED > HEAD_MAX_FIELDS) /* a second proxy could refuse it */
        return;
    outcome_compose(outcome, minor, &wire);
    outcome_take(&again, outcome->kind, wire.at, wire.n, wire.n, &whole);
    MUST(again.end == MESSAGE_WHOLE);
    MUST(again.used == wire.n);
    oracle_check(&again, wire.at);
    oracle_check_composed(&again);
    MUST(outcome_strip(&again, outcome));
    MUST(outcome_means_same(outcome, minor, &again));
    outcome_compose(&again, minor, &anew);
    MUST(wire.n == anew.n && memcmp(wire.at, anew.at, wire.n) == 0);
    free(wire.at);
    free(anew.at);
    outcome_free(&again);
}

/* A refusal, with whatever bytes as its line, is an answer of one line. */
static void check_refused(const struct outcome *outcome, const char *bytes, size_t n)
{
    static struct outcome told;
    const struct fault *fault = &outcome->fault;
    struct own_answer own = {.status = fault->status, .line = fault->text, .client_minor = n % 2, .close = n % 3 == 0};
    char line[64], out[1024];
    size_t length;

    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), bytes);
    own.line = n % 5 == 0 ? line : own.line;
    own.retry_after = n % 7;
    own.allow = fault->status == 405 ? "GET" : NULL;
    length = compose_own(out, sizeof out, &own);
    MUST(length > 0);
    outcome_take(&told, MESSAGE_ANSWER, out, length, length, &whole);
    oracle_check(&told, out);
    MUST(told.end == MESSAGE_WHOLE && told.used == length && told.head.status == fault->status);
    MUST(memchr(told.body.at, '\n', told.body.n) == told.body.at + told.body.n - 1);
    MUST(told.head.keep_alive == !own.close);
    outcome_free(&told);
}

unsigned check_messages(enum message_kind kind, const char *bytes, size_t n, size_t max, const struct cuts *cuts)
{
    static const struct cuts each = {.every = 1};
    static struct outcome outcome;
    unsigned good = 0;
    size_t used = 0;

    do {
        outcome_take(&outcome, kind, bytes + used, n - used, max, &whole);
        oracle_check(&outcome, bytes + used);
        check_cuts(&outcome, bytes + used, n - used, max, &each);
        check_cuts(&outcome, bytes + used, n - used, max, cuts);
        if (outcome.end == MESSAGE_WHOLE) {
            good++;
            used += outcome.used;
            check_composed(&outcome, 1);
            if (kind != MESSAGE_REQUEST && outcome.head.status >= 200)
                check_composed(&outcome, 0);
        }
        if (outcome.end == MESSAGE_BAD)
            check_refused(&outcome, bytes + used, n - used);
        outcome_free(&outcome);
    } while (outcome.end == MESSAGE_WHOLE && used < n);
    return good;
}

void check_cuts_in_two(enum message_kind kind, const char *bytes, size_t n)
{
    static struct outcome outcome;

    outcome_take(&outcome, kind, bytes, n, 65536, &whole);
    for (size_t at = 1; at < n; at++)
        check_cuts(&outcome, bytes, n, 65536, &(struct cuts){.at = &at, .n = 1});
    outcome_free(&outcome);
}
