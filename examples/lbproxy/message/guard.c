/* guard.c - a chunked body's framing as a machine of one byte a step.
 *
 * Nothing is forgiven: no sign, no blank, no bare CR or LF, no folded trailer line. */
#include "examples/lbproxy/message/guard.h"

#include "examples/lbproxy/message/chars.h"

void guard_begin(struct guard *guard, bool chunked)
{
    *guard = (struct guard){.at = chunked ? GUARD_SIZE : GUARD_OFF};
}

static unsigned digit(unsigned char byte)
{
    return byte <= '9' ? byte - (unsigned)'0' : (byte | 0x20U) - (unsigned)'a' + 10;
}

static const char *look_at_size(struct guard *guard, unsigned char byte)
{
    if ((chars[byte] & CHAR_HEX) == 0)
        return guard->count == 0 ? "a chunk's size does not begin with a hex digit"
                                 : "a byte that may not be in a chunk's size";
    if (guard->count == GUARD_MAX_DIGITS)
        return "a chunk's size of more than 16 digits";
    guard->count++;
    guard->size = guard->size << 4 | digit(byte);
    return NULL;
}

static const char *look_at_extension(struct guard *guard, unsigned char byte)
{
    if (byte < ' ' || byte > '~')
        return "a byte that may not be in a chunk's extension";
    if (guard->count++ > GUARD_MAX_EXTENSION) /* its ';' is counted too */
        return "a chunk's extension is too long";
    return NULL;
}

static const char *expect(struct guard *guard, unsigned char byte, char wanted, enum guard_at next, const char *fault)
{
    if (byte != (unsigned char)wanted)
        return fault;
    guard->at = next;
    guard->count = 0;
    return NULL;
}

/* The bytes are counted as they come, or, where no blank follows the colon, as they go out: with one. */
static const char *count_trailer(struct guard *guard, size_t n)
{
    guard->trailer += n;
    return guard->trailer > GUARD_MAX_TRAILER ? "the trailer is too large" : NULL;
}

static const char *look_at_line_start(struct guard *guard, unsigned char byte)
{
    if (byte == '\r') {
        guard->at = GUARD_END_LF;
        return NULL;
    }
    if ((chars[byte] & CHAR_TOKEN) == 0)
        return "a trailer line does not begin with a field's name";
    guard->at = GUARD_TRAILER_NAME;
    return count_trailer(guard, 1);
}

static const char *look_at_name(struct guard *guard, unsigned char byte)
{
    if (byte == ':') {
        guard->at = GUARD_TRAILER_VALUE;
        guard->count = 0;
    } else if ((chars[byte] & CHAR_TOKEN) == 0) {
        return "a byte that may not be in a trailer field's name";
    }
    return count_trailer(guard, 1);
}

static const char *look_at_value(struct guard *guard, unsigned char byte)
{
    bool is_tight = guard->count++ == 0 && byte != ' ' && byte != '\t'; /* a blank is added as it goes out */

    if (byte == '\r')
        guard->at = GUARD_TRAILER_LF;
    else if ((chars[byte] & CHAR_VALUE) == 0)
        return "a control byte in a trailer field";
    return count_trailer(guard, 1 + (size_t)is_tight);
}

static const char *look_at_line_end(struct guard *guard, unsigned char byte)
{
    const char *fault = expect(guard, byte, '\n', GUARD_TRAILER, "a bare CR in a trailer field");

    return fault != NULL ? fault : count_trailer(guard, 1);
}

static const char *look_at(struct guard *guard, unsigned char byte)
{
    switch (guard->at) {
    case GUARD_SIZE:
        return look_at_size(guard, byte);
    case GUARD_EXTENSION:
        return look_at_extension(guard, byte);
    case GUARD_SIZE_CR:
        return expect(guard, byte, '\r', GUARD_SIZE_LF, "a chunk's size is not followed by CR LF");
    case GUARD_SIZE_LF:
        return expect(
            guard, byte, '\n', guard->size > 0 ? GUARD_DATA : GUARD_TRAILER, "a bare CR after a chunk's size");
    case GUARD_DATA_CR:
        return expect(guard, byte, '\r', GUARD_DATA_LF, "a chunk is longer than its size");
    case GUARD_DATA_LF:
        return expect(guard, byte, '\n', GUARD_SIZE, "a bare CR after a chunk");
    case GUARD_TRAILER:
        return look_at_line_start(guard, byte);
    case GUARD_TRAILER_NAME:
        return look_at_name(guard, byte);
    case GUARD_TRAILER_VALUE:
        return look_at_value(guard, byte);
    case GUARD_TRAILER_LF:
        return look_at_line_end(guard, byte);
    case GUARD_END_LF:
        return expect(guard, byte, '\n', GUARD_END, "a bare CR after the trailer");
    default:
        return "bytes where no framing is expected";
    }
}

/* Whether another kind of bytes begins with this one. */
static bool turn(struct guard *guard, char byte)
{
    if (guard->at == GUARD_SIZE && guard->count > 0 && (byte == ';' || byte == '\r')) {
        guard->at = byte == ';' ? GUARD_EXTENSION : GUARD_SIZE_CR;
        guard->count = 0;
        return byte == ';';
    }
    if (guard->at == GUARD_EXTENSION && byte == '\r') {
        guard->at = GUARD_SIZE_CR;
        return true;
    }
    return guard->at == GUARD_DATA || guard->at == GUARD_END;
}

const char *guard_look(struct guard *guard, const char *bytes, size_t n, size_t *looked)
{
    size_t i;
    const char *fault = NULL;

    for (i = 0; i < n && !turn(guard, bytes[i]); i++) {
        fault = look_at(guard, (unsigned char)bytes[i]);
        if (fault != NULL)
            break;
    }
    *looked = i;
    return fault;
}

void guard_data(struct guard *guard, size_t n)
{
    guard->size -= n;
    if (guard->size == 0)
        guard->at = GUARD_DATA_CR;
}
