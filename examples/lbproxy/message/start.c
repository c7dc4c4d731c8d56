/* start.c - start lines, read by their grammar alone: one blank between the words, and nothing that is not needed. */
#include "examples/lbproxy/message/start.h"

#include <string.h>

#include "examples/lbproxy/message/chars.h"

#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

static const struct fault no_method = {400, "the request does not begin with a method"};
static const struct fault no_target = {400, "a request line without a target"};
static const struct fault fragment = {400, "a fragment in the target"};
static const struct fault odd_target_byte = {400, "a byte that may not be in a target"};
static const struct fault odd_request_line = {400, "the request line does not end in a version"};
static const struct fault version_09 = {505, "HTTP/0.9 is not spoken here"};
static const struct fault other_version = {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
static const struct fault unknown_method = {501, "an unknown method"};
static const struct fault connect_method = {405, "CONNECT is not served"};
static const struct fault long_target = {414, "the target is too long"};
static const struct fault star = {400, "the target * is for OPTIONS alone"};
static const struct fault odd_target = {400, "the target is neither a path nor an http:// address"};
static const struct fault odd_target_host = {400, "the target's host is none"};
static const struct fault no_version = {502, "the answer does not begin with a version"};
static const struct fault answer_version = {502, "the answer is neither HTTP/1.0 nor HTTP/1.1"};
static const struct fault odd_status = {502, "the answer's status is not of three digits"};
static const struct fault status_range = {502, "the answer's status is not from 100 to 599"};
static const struct fault odd_answer_line = {502, "the answer's status is not followed by a blank"};

/* By their number in llhttp. PRI is HTTP/2's, SOURCE is Icecast's, and what comes after them RTSP's. */
#define METHOD(number, name, text) [number] = TEXT(#text),
static const struct text methods[] = {HTTP_METHOD_MAP(METHOD)};
#undef METHOD

enum {
    METHODS = sizeof methods / sizeof methods[0]
};

struct text start_method(enum llhttp_method method)
{
    return methods[method];
}

static const struct fault *find_method(struct text name, struct head *head)
{
    for (unsigned i = 0; i < METHODS; i++)
        if (methods[i].n == name.n && memcmp(methods[i].at, name.at, name.n) == 0 && i != HTTP_SOURCE &&
            i != HTTP_PRI) {
            head->method = (enum llhttp_method)i;
            return i == HTTP_CONNECT ? &connect_method : NULL;
        }
    return &unknown_method;
}

static bool is_digit(char byte)
{
    return (chars[(unsigned char)byte] & CHAR_DIGIT) != 0;
}

/* "HTTP/1.1" and the like, in eight bytes. */
static bool is_version(const char *at)
{
    return memcmp(at, "HTTP/", 5) == 0 && is_digit(at[5]) && at[6] == '.' && is_digit(at[7]);
}

static bool take_version(const char *at, struct head *head)
{
    head->minor = (unsigned)(at[7] - '0');
    return at[5] == '1' && head->minor <= 1;
}

/* ---- hosts ---- */

/* A bracketed address, or a name. */
static size_t host_span(struct text text)
{
    size_t i;

    if (text.n == 0 || text.at[0] != '[')
        return chars_span(text.at, text.n, CHAR_HOST);
    for (i = 1; i < text.n && (text.at[i] == ':' || (chars[(unsigned char)text.at[i]] & CHAR_HOST) != 0); i++)
        ;
    return i > 1 && i < text.n && text.at[i] == ']' ? i + 1 : 0;
}

bool start_is_authority(struct text text)
{
    size_t host = host_span(text);

    if (host == 0)
        return false;
    if (host == text.n)
        return true;
    return text.at[host] == ':' && chars_span(text.at + host + 1, text.n - host - 1, CHAR_DIGIT) == text.n - host - 1;
}

/* ---- targets ---- */

/* "http://host/path" becomes the host and "/path". */
static const struct fault *split_absolute(struct head *head)
{
    static const struct text root = TEXT("/"), all = TEXT("*");
    struct text rest = {head->target.at + 7, head->target.n - 7};
    size_t n = 0;

    while (n < rest.n && rest.at[n] != '/' && rest.at[n] != '?')
        n++;
    head->host = (struct text){rest.at, n};
    if (!start_is_authority(head->host))
        return &odd_target_host;
    head->target = (struct text){rest.at + n, rest.n - n};
    if (n == rest.n)
        head->target = head->method == HTTP_OPTIONS ? all : root;
    return NULL;
}

static const struct fault *judge_target(struct head *head)
{
    struct text target = head->target;

    if (target.n > HEAD_MAX_TARGET)
        return &long_target;
    if (target.at[0] == '/')
        return NULL;
    if (target.n == 1 && target.at[0] == '*')
        return head->method == HTTP_OPTIONS ? NULL : &star;
    if (target.n > 7 && text_is((struct text){target.at, 7}, "http://"))
        return split_absolute(head);
    return &odd_target;
}

static const struct fault *bad_target(struct text rest)
{
    if (rest.n == 0)
        return &version_09;
    return rest.at[0] == '#' ? &fragment : &odd_target_byte;
}

const struct fault *start_request(struct text line, struct head *head)
{
    struct text method = {line.at, chars_span(line.at, line.n, CHAR_TOKEN)}, rest;
    const struct fault *fault;

    if (method.n == 0 || (method.n < line.n && line.at[method.n] != ' '))
        return &no_method;
    if (method.n + 1 >= line.n)
        return &no_target;
    rest = (struct text){line.at + method.n + 1, line.n - method.n - 1};
    head->target = (struct text){rest.at, chars_span(rest.at, rest.n, CHAR_TARGET)};
    rest = (struct text){rest.at + head->target.n, rest.n - head->target.n};
    if (rest.n == 0 || rest.at[0] != ' ')
        return bad_target(rest);
    if (head->target.n == 0)
        return &no_target;
    if (rest.n != 9 || !is_version(rest.at + 1))
        return &odd_request_line;
    fault = find_method(method, head);
    if (fault != NULL)
        return fault;
    return take_version(rest.at + 1, head) ? judge_target(head) : &other_version;
}

const struct fault *start_answer(struct text line, struct head *head)
{
    if (line.n < 9 || !is_version(line.at) || line.at[8] != ' ')
        return &no_version;
    if (!take_version(line.at, head))
        return &answer_version;
    if (line.n < 12 || chars_span(line.at + 9, 3, CHAR_DIGIT) != 3)
        return &odd_status;
    head->status = (unsigned)((line.at[9] - '0') * 100 + (line.at[10] - '0') * 10 + (line.at[11] - '0'));
    if (head->status < 100 || head->status > 599)
        return &status_range;
    if (line.n > 12 && line.at[12] != ' ')
        return &odd_answer_line;
    head->reason = (struct text){line.at + 12, line.n - 12};
    if (line.n > 12)
        head->reason = (struct text){line.at + 13, line.n - 13};
    return NULL;
}
