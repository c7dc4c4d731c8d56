/* framed_wire.c - see framed_wire.h. One table says what fits each type. */
#include "link/framed_wire.h"

#include <stdbool.h>
#include <stdio.h>

#include "linkpool/error.h"

static const struct rule {
    const char *name;
    uint32_t min, max; /* bytes of payload; UINT32_MAX: as many as the link takes */
    bool has_id;
} rules[FRAMED_TYPES] = {
    /* clang-format off */
    [FRAMED_HELLO]     = {"HELLO",     8, 8 + FRAMED_MAX_TOKEN, false},
    [FRAMED_HELLO_ACK] = {"HELLO_ACK", 12, 12,                  false},
    [FRAMED_LIMIT]     = {"LIMIT",     4, 4,                    false},
    [FRAMED_REQUEST]   = {"REQUEST",   0, UINT32_MAX,           true},
    [FRAMED_ANSWER]    = {"ANSWER",    0, UINT32_MAX,           true},
    [FRAMED_ERROR]     = {"ERROR",     4, 4 + FRAMED_MAX_TEXT,  true},
    [FRAMED_CANCEL]    = {"CANCEL",    0, 0,                    true},
    [FRAMED_PING]      = {"PING",      8, 8,                    false},
    [FRAMED_PONG]      = {"PONG",      8, 8,                    false},
    [FRAMED_GOAWAY]    = {"GOAWAY",    8, 8 + FRAMED_MAX_TEXT,  false},
    /* clang-format on */
};

void framed__put_head(unsigned char at[FRAMED_HEAD], uint8_t type, uint32_t id, size_t n)
{
    framed__put32(at, (uint32_t)n);
    framed__put32(at + 4, (uint32_t)type << 24);
    framed__put32(at + 8, id);
}

struct framed_head framed__get_head(const unsigned char at[FRAMED_HEAD])
{
    return (struct framed_head){.n = framed__get32(at),
        .type = at[4],
        .flags = at[5],
        .reserved = (uint16_t)(at[6] << 8 | at[7]),
        .id = framed__get32(at + 8)};
}

int framed__check_head(const struct framed_head *head, unsigned allowed, uint32_t max_payload, char *why, size_t n)
{
    if (head->type >= FRAMED_TYPES || !rules[head->type].name) {
        snprintf(why, n, "a frame of unknown type %u", head->type);
        return LINKPOOL_EINVAL;
    }
    const struct rule *rule = &rules[head->type];
    uint32_t max = rule->max == UINT32_MAX ? max_payload : rule->max;
    if (head->flags)
        snprintf(why, n, "%s with unknown flags 0x%02x", rule->name, head->flags);
    else if (head->reserved)
        snprintf(why, n, "%s with reserved bits 0x%04x", rule->name, head->reserved);
    else if (!(allowed & FRAMED_BIT(head->type)))
        snprintf(why, n, "%s out of place", rule->name);
    else if (head->n < rule->min || head->n > max)
        snprintf(why, n, "%s of %u bytes; it is from %u to %u", rule->name, head->n, rule->min, max);
    else if (rule->has_id ? !head->id || head->id > FRAMED_MAX_ID : head->id != 0)
        snprintf(why, n, "%s with the id %u", rule->name, head->id);
    else
        return 0;
    return LINKPOOL_EINVAL;
}
