/* scan.c - finds a head's end, and judges each line as soon as it is whole: line ends, control bytes, names, bounds.
 *
 * Which fault is found never depends on how the bytes came: lines are judged one after the other, and a bound is
 * reached at the same byte whether or not more have come. */
#include <string.h>

#include "examples/lbproxy/message/chars.h"
#include "examples/lbproxy/message/internal.h"
#include "examples/lbproxy/message/message.h"

enum {
    MAX_START = HEAD_MAX_TARGET + 64 /* of a request's line: the target, the longest method, the version */
};

static const struct fault large_head = {431, "the head is too large"};
static const struct fault long_start = {414, "the request line is too long"};
static const struct fault bare_lf = {400, "a bare LF"};
static const struct fault bare_cr = {400, "a bare CR"};
static const struct fault nul = {400, "a NUL"};
static const struct fault control = {400, "a control byte"};
static const struct fault two_empty = {400, "more than one empty line before the request"};
static const struct fault empty = {502, "an empty line before the answer"};
static const struct fault folded = {400, "a folded line"};
static const struct fault no_name = {400, "a field without a name"};
static const struct fault no_colon = {400, "a field without a colon"};
static const struct fault blank = {400, "a blank before a field's colon"};
static const struct fault odd_name = {400, "a byte that may not be in a field's name"};

static const struct fault *judge_name(struct text line)
{
    size_t n = chars_span(line.at, line.n, CHAR_TOKEN);

    if (line.at[0] == ' ' || line.at[0] == '\t')
        return &folded;
    if (n == line.n)
        return &no_colon;
    if (line.at[n] == ':')
        return n > 0 ? NULL : &no_name;
    return line.at[n] == ' ' || line.at[n] == '\t' ? &blank : &odd_name;
}

static const struct fault *judge_line(struct text line, bool is_field)
{
    const char *odd = chars_find_control(line.at, line.n);

    if (odd != NULL)
        return *odd == '\r' ? &bare_cr : *odd == '\0' ? &nul : &control;
    return is_field ? judge_name(line) : NULL;
}

/* The line under way ends at `end` at the earliest. */
static const struct fault *judge_bounds(const struct message *message, size_t end, size_t max)
{
    size_t start_end = message->start + MAX_START;

    if (message->kind == MESSAGE_REQUEST && message->line == message->start && start_end <= max && end > start_end)
        return &long_start;
    return end > max ? &large_head : NULL;
}

/* A line without its end, which is an empty one where n is 0. */
static enum message_step take_line(struct message *message, struct text line, size_t end)
{
    bool first = message->line == message->start;
    const struct fault *fault;

    message->line = end;
    if (line.n == 0 && !first)
        return MESSAGE_WHOLE;
    if (line.n == 0 && message->kind != MESSAGE_REQUEST)
        return message__refuse(message, empty);
    if (line.n == 0 && message->start > 0)
        return message__refuse(message, two_empty);
    if (line.n == 0) {
        message->start = end;
        return MESSAGE_MORE;
    }
    message->lines += !first;
    fault = judge_line(line, !first);
    return fault != NULL ? message__refuse(message, *fault) : MESSAGE_MORE;
}

enum message_step message_scan(struct message *message, const char *bytes, size_t n, size_t max, size_t *head_n)
{
    enum message_step step = message->fault.text != NULL ? MESSAGE_BAD : MESSAGE_MORE;

    while (step == MESSAGE_MORE) {
        const char *lf = n > message->scanned ? memchr(bytes + message->scanned, '\n', n - message->scanned) : NULL;
        size_t end = lf != NULL ? (size_t)(lf - bytes) + 1 : n + 1, line_n = end - message->line - 1;
        const struct fault *fault = judge_bounds(message, end, max);

        if (fault != NULL)
            return message__refuse(message, *fault);
        message->scanned = lf != NULL ? end : n;
        if (lf == NULL)
            return MESSAGE_MORE;
        if (line_n == 0 || lf[-1] != '\r')
            return message__refuse(message, bare_lf);
        step = take_line(message, (struct text){bytes + message->line, line_n - 1}, end);
    }
    *head_n = message->line;
    return step;
}
