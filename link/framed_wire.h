/* framed_wire.h - frames as bytes: the header, the types, and what fits each. No I/O, no state. */
#ifndef LINKPOOL_LINK_FRAMED_WIRE_H
#define LINKPOOL_LINK_FRAMED_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum framed_type {
    FRAMED_HELLO = 1,
    FRAMED_HELLO_ACK,
    FRAMED_LIMIT,
    FRAMED_REQUEST,
    FRAMED_ANSWER,
    FRAMED_ERROR,
    FRAMED_CANCEL,
    FRAMED_PING,
    FRAMED_PONG,
    FRAMED_GOAWAY,
    FRAMED_TYPES
};

enum {
    FRAMED_VERSION = 1,
    FRAMED_HEAD = 12,        /* bytes of a header */
    FRAMED_MAX_TOKEN = 4096, /* bytes that may follow the fixed part of a HELLO, */
    FRAMED_MAX_TEXT = 1024,  /* and of an ERROR or a GOAWAY */
    FRAMED_MAX_ID = 0x7fffffff
};

/** A header, taken apart. */
struct framed_head {
    uint32_t n; /* bytes of payload */
    uint8_t type, flags;
    uint16_t reserved;
    uint32_t id;
};

/** A bit of a set of types. */
#define FRAMED_BIT(type) (1u << (type))

static inline void framed__put32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}
static inline uint32_t framed__get32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline void framed__put64(unsigned char *at, uint64_t value)
{
    framed__put32(at, (uint32_t)(value >> 32));
    framed__put32(at + 4, (uint32_t)value);
}
static inline uint64_t framed__get64(const unsigned char *at)
{
    return (uint64_t)framed__get32(at) << 32 | framed__get32(at + 4);
}

static inline void framed__put_head(unsigned char at[FRAMED_HEAD], uint8_t type, uint32_t id, size_t n)
{
    framed__put32(at, (uint32_t)n);
    framed__put32(at + 4, (uint32_t)type << 24);
    framed__put32(at + 8, id);
}
static inline struct framed_head framed__get_head(const unsigned char at[FRAMED_HEAD])
{
    return (struct framed_head){.n = framed__get32(at),
        .type = at[4],
        .flags = at[5],
        .reserved = (uint16_t)(at[6] << 8 | at[7]),
        .id = framed__get32(at + 8)};
}

/** What fits a type. */
struct framed_rule {
    const char *name;
    uint32_t min, max; /* bytes of payload; UINT32_MAX: as many as the link takes */
    bool has_id;
};
extern const struct framed_rule framed__rules[FRAMED_TYPES];

/** Says whether a header may stand there; as framed__check_head(), which has the words. */
static inline bool framed__may_stand(const struct framed_head *head, unsigned allowed, uint32_t max_payload)
{
    if (head->type >= FRAMED_TYPES || !(allowed & FRAMED_BIT(head->type)) || head->flags | head->reserved)
        return false;
    const struct framed_rule *rule = &framed__rules[head->type];
    uint32_t max = rule->max == UINT32_MAX ? max_payload : rule->max;
    return head->n >= rule->min && head->n <= max && (rule->has_id ? head->id && head->id <= FRAMED_MAX_ID : !head->id);
}

/**
 * Says whether a header may stand there.
 *
 * @param allowed      the types that may come now: FRAMED_BIT() of each.
 * @param max_payload  of those types that have no bound of their own.
 * @param why          gets words that name what is wrong.
 * @return 0, or LINKPOOL_EINVAL.
 */
int framed__check_head(const struct framed_head *head, unsigned allowed, uint32_t max_payload, char *why, size_t n);

#endif
