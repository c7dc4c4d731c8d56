/* chars.c - the table of bytes, after RFC 9110 (token, field value) and RFC 3986 (host). */
#include "examples/lbproxy/message/chars.h"

#include <stdint.h>
#include <string.h>

/* clang-format off */
#define V   CHAR_VALUE
#define TG  (CHAR_VALUE | CHAR_TARGET)
#define TH  (TG | CHAR_HOST)
#define TK  (TG | CHAR_TOKEN)
#define ALL (TG | CHAR_TOKEN | CHAR_HOST)
#define HEX (ALL | CHAR_HEX)
#define DIG (HEX | CHAR_DIGIT)

const unsigned char chars[256] = {
    ['\t'] = V, [' '] = V,
    ['!'] = ALL, ['"'] = TG, ['#'] = V | CHAR_TOKEN, ['$' ... '\''] = ALL, ['(' ... ')'] = TH, ['*' ... '+'] = ALL,
    [','] = TH, ['-' ... '.'] = ALL, ['/'] = TG, ['0' ... '9'] = DIG, [':'] = TG, [';'] = TH, ['<'] = TG, ['='] = TH,
    ['>' ... '@'] = TG, ['A' ... 'F'] = HEX, ['G' ... 'Z'] = ALL, ['[' ... ']'] = TG, ['^'] = TK, ['_'] = ALL,
    ['`'] = TK, ['a' ... 'f'] = HEX, ['g' ... 'z'] = ALL, ['{'] = TG, ['|'] = TK, ['}'] = TG, ['~'] = ALL,
    [0x80 ... 0xff] = V,
};
/* clang-format on */

/* Of eight bytes: not 0 where one of them is below 0x20, a HTAB too, or is 0x7f. */
static uint64_t maybe_control(const char *at)
{
    const uint64_t ones = UINT64_MAX / 0xff, tops = ones << 7;
    uint64_t word, deletes;

    memcpy(&word, at, sizeof word);
    deletes = word ^ (ones * 0x7f);
    return (((word - ones * 0x20) & ~word) | ((deletes - ones) & ~deletes)) & tops;
}

const char *chars_find_control(const char *at, size_t n)
{
    uint64_t maybe = n < 8;

    if (n >= 8) {
        maybe = maybe_control(at + n - 8); /* they may be looked at twice */
        for (size_t i = 0; i + 8 < n; i += 8)
            maybe |= maybe_control(at + i);
    }
    for (size_t i = 0; maybe != 0 && i < n; i++)
        if ((chars[(unsigned char)at[i]] & CHAR_VALUE) == 0)
            return at + i;
    return NULL;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct text text_trim(struct text text)
{
    while (text.n > 0 && is_blank(text.at[text.n - 1]))
        text.n--;
    for (; text.n > 0 && is_blank(text.at[0]); text.n--)
        text.at++;
    return text;
}

static unsigned char lower(char byte)
{
    return (unsigned char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
}

bool text_is(struct text text, const char *word)
{
    return text_same(text, (struct text){word, strlen(word)});
}

bool text_same(struct text a, struct text b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}
