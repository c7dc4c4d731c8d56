/* framed_wire.c - see framed_wire.h. One table says what fits each type. */
#include "link/framed_wire.h"

#include <stdio.h>

#include "linkpool/error.h"

const struct framed_rule framed__rules[FRAMED_TYPES] = {
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

int framed__check_head(const struct framed_head *head, unsigned allowed, uint32_t max_payload, char *why, size_t n)
{
    if (framed__may_stand(head, allowed, max_payload))
        return 0;
    if (head->type >= FRAMED_TYPES || !framed__rules[head->type].name) {
        snprintf(why, n, "a frame of unknown type %u", head->type);
        return LINKPOOL_EINVAL;
    }
    const struct framed_rule *rule = &framed__rules[head->type];
    uint32_t max = rule->max == UINT32_MAX ? max_payload : rule->max;
    if (head->flags)
        snprintf(why, n, "%s with unknown flags 0x%02x", rule->name, head->flags);
    else if (head->reserved)
        snprintf(why, n, "%s with reserved bits 0x%04x", rule->name, head->reserved);
    else if (!(allowed & FRAMED_BIT(head->type)))
        snprintf(why, n, "%s out of place", rule->name);
    else if (head->n < rule->min || head->n > max)
        snprintf(why, n, "%s of %u bytes; it is from %u to %u", rule->name, head->n, rule->min, max);
    else
        snprintf(why, n, "%s with the id %u", rule->name, head->id);
    return LINKPOOL_EINVAL;
}
