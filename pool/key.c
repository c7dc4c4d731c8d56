/* key.c - an endpoint as bytes: two are the same exactly when all that makes connections interchangeable is.
 *
 * Parts in order, each text with its length before it, so that no two lists of parts read the same. */
#include <stdio.h>
#include <string.h>

#include "pool/internal.h"

/* Each text is bounded, so that a key is: a DNS name has 253 bytes, tags as many. */
enum {
    LONGEST_TEXT = 253
};
_Static_assert(
    POOL_KEY >= LINK_ADDRESS_TEXT + 3 * (LONGEST_TEXT + 1) + 4 * sizeof(uint8_t) + 2 * sizeof(void *), "any key fits");

static void put(struct pool_key *key, const void *bytes, size_t n)
{
    memcpy(key->bytes + key->size, bytes, n);
    key->size += (uint32_t)n;
}

static uint16_t put_text(struct pool_key *key, const char *text)
{
    uint8_t n = (uint8_t)strlen(text); /* no text is longer than 253 */
    uint16_t at;

    put(key, &n, sizeof n);
    at = (uint16_t)key->size;
    put(key, text, n + 1u);
    return at;
}

static int check_text(const char *name, const char *text, char *why, size_t n)
{
    if (strlen(text) <= LONGEST_TEXT)
        return 0;
    snprintf(why, n, "%s has %zu bytes; at most %d", name, strlen(text), LONGEST_TEXT);
    return LINKPOOL_EINVAL;
}

int pool__key_make(struct pool_key *key, const struct pool_endpoint *endpoint, const struct pool_host_options *options,
    char *why, size_t n)
{
    const struct transport *transport = endpoint->transport ? endpoint->transport : options->transport;
    const struct protocol *protocol = endpoint->protocol ? endpoint->protocol : options->protocol;
    const char *server_name = endpoint->server_name ? endpoint->server_name : "",
               *tag = endpoint->tag ? endpoint->tag : "";
    const char *local = endpoint->local ? endpoint->local : "";
    struct link_address address;
    char text[LINK_ADDRESS_TEXT];
    int error;

    if (!endpoint->address) {
        snprintf(why, n, "no address is given");
        return LINKPOOL_EADDRESS;
    }
    if ((error = link_address_parse(endpoint->address, strlen(endpoint->address), &address, why, n)) ||
        (error = check_text("server_name", server_name, why, n)) || (error = check_text("tag", tag, why, n)) ||
        (error = check_text("local", local, why, n)))
        return error;
    link_address_format(&address, text);
    key->size = 0;
    key->address_text = put_text(key, text);
    key->server_name = put_text(key, server_name);
    key->local = put_text(key, local);
    put_text(key, tag);
    put(key, &transport, sizeof transport);
    put(key, &protocol, sizeof protocol);
    return 0;
}
