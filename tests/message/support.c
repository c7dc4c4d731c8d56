/* support.c - see support.h. */
#include "tests/message/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/message/check.h"

struct outcome *take(enum message_kind kind, const char *bytes, size_t n)
{
    static const struct cuts whole = {0};
    static struct outcome outcome;

    outcome_free(&outcome);
    check_messages(kind, bytes, n, 65536, &whole);
    check_cuts_in_two(kind, bytes, n);
    outcome_take(&outcome, kind, bytes, n, 65536, &whole);
    return &outcome;
}

static void expect_sample(enum message_kind kind, const struct sample *sample)
{
    const struct outcome *outcome = take(kind, sample->bytes, sample->n);

    if (sample->fault == NULL) {
        cr_expect(eq(int, outcome->end, MESSAGE_WHOLE), "%s", sample->bytes);
        cr_expect(eq(ptr, (void *)outcome->fault.text, NULL), "%s: %s", sample->bytes, outcome->fault.text);
        return;
    }
    cr_expect(eq(int, outcome->end, MESSAGE_BAD), "%s", sample->bytes);
    cr_expect(eq(uint, outcome->fault.status, sample->status), "%s", sample->bytes);
    cr_expect(eq(str, (char *)(outcome->fault.text != NULL ? outcome->fault.text : "none"), (char *)sample->fault),
        "%s", sample->bytes);
}

void expect_samples(enum message_kind kind, const struct sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_sample(kind, &samples[i]);
}

char *text_of(struct text text)
{
    static char texts[4][512];
    static unsigned next;
    char *at = texts[next++ % 4];

    snprintf(at, sizeof texts[0], "%.*s", (int)text.n, text.n > 0 ? text.at : "");
    return at;
}

char *composed(enum message_kind kind, const char *bytes, size_t n, unsigned minor)
{
    static struct bytes wire;
    struct outcome *outcome = take(kind, bytes, n);

    free(wire.at);
    wire = (struct bytes){0};
    cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    outcome_compose(outcome, minor, &wire);
    return wire.at;
}
