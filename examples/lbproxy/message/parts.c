/* parts.c - the pieces lie in iov[2] and on; what frames them is set around them, so that nothing is moved. */
#include "examples/lbproxy/message/parts.h"

enum {
    SIZE_LINE = 1,
    PIECES = 2
};

void parts_begin(struct parts *parts)
{
    parts->n = 0;
    parts->first = parts->last = PIECES;
    parts->bytes = 0;
}

static struct iovec piece(const char *at, size_t n)
{
    return (struct iovec){.iov_base = (void *)at, .iov_len = n}; /* it is only written from */
}

bool parts_add(struct parts *parts, const char *at, size_t n)
{
    struct iovec *before = &parts->iov[PIECES + parts->n - 1];

    if (n == 0)
        return true;
    if (parts->n > 0 && (const char *)before->iov_base + before->iov_len == at)
        before->iov_len += n;
    else if (parts->n < PARTS_MAX)
        parts->iov[PIECES + parts->n++] = piece(at, n);
    else
        return false;
    parts->bytes += n;
    return true;
}

void parts_plain(struct parts *parts)
{
    parts->first = PIECES;
    parts->last = PIECES + parts->n;
}

static void put_last(struct parts *parts, const char *at, size_t n)
{
    parts->iov[parts->last++] = piece(at, n);
}

static void put_size_line(struct parts *parts)
{
    static const char digits[] = "0123456789abcdef";
    char *at = parts->size_line + sizeof parts->size_line;
    char *end = at;

    *--at = '\n';
    *--at = '\r';
    for (size_t left = parts->bytes; left > 0; left >>= 4)
        *--at = digits[left & 15];
    parts->first = SIZE_LINE;
    parts->iov[SIZE_LINE] = piece(at, (size_t)(end - at));
}

void parts_chunk(struct parts *parts, bool last, const char *trailer, size_t trailer_n)
{
    /* The end of a chunk, the last chunk, and the end of a trailer that has no fields, in one. */
    static const char ends[] = "\r\n0\r\n\r\n";
    size_t from = parts->bytes > 0 ? 0 : 2, to = !last ? 2 : trailer_n > 0 ? 5 : 7;

    parts_plain(parts);
    if (parts->bytes > 0)
        put_size_line(parts);
    if (from < to)
        put_last(parts, ends + from, to - from);
    if (last && trailer_n > 0) {
        put_last(parts, trailer, trailer_n);
        put_last(parts, ends, 2);
    }
}

void parts_put_first(struct parts *parts, const char *at, size_t n)
{
    if (n > 0)
        parts->iov[--parts->first] = piece(at, n);
}

size_t parts_left(const struct parts *parts)
{
    size_t n = 0;

    for (int i = parts->first; i < parts->last; i++)
        n += parts->iov[i].iov_len;
    return n;
}

void parts_skip(struct parts *parts, size_t n)
{
    while (parts->first < parts->last && n >= parts->iov[parts->first].iov_len)
        n -= parts->iov[parts->first++].iov_len;
    if (parts->first < parts->last) {
        struct iovec *iov = &parts->iov[parts->first];

        *iov = piece((const char *)iov->iov_base + n, iov->iov_len - n);
    }
}
