/* words.c - what was said on the end of a link, in words for people: by its peer, its protocol or its transport. Its
 * owner keeps the last. */
#include <string.h>

#include "link/internal.h"

/* What is no plain character becomes a dot. */
void link__quote(char *to, size_t size, const char *words, size_t n)
{
    if (n >= size)
        n = size - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(words[i] < ' ' || words[i] > '~' ? '.' : words[i]);
    to[n] = '\0';
}

void link__note(struct link_owner *owner, const char *text)
{
    const struct linkpool_env *env = owner->core->env;

    if (owner->text)
        link__release(env, owner->text, strlen(owner->text) + 1);
    owner->text = NULL;
    if (text && *text && (owner->text = link__alloc(env, strlen(text) + 1)))
        strcpy(owner->text, text); /* without memory the reason alone is kept */
}

void link__note_end(struct link_owner *owner, enum link_reason reason, int system_errno)
{
    if (owner->fail_reason != reason)
        link__note(owner, NULL);
    owner->last_reason = (uint8_t)reason;
    owner->last_errno = system_errno;
}

void link__forget_words(struct link_owner *owner, enum link_reason reason)
{
    if (owner->fail_reason && owner->fail_reason != reason)
        link__note(owner, NULL);
    owner->fail_reason = LINK_NO_REASON;
    owner->fail_errno = 0;
}
