/* session.c - see session.h. What is said is one letter, so that it goes whole or not at all. */
#include "tests/fakes/session.h"

struct session {
    char said; /* and to be heard; 0: nothing */
    bool owed; /* there was no room for it yet */
};

static int say(struct protocol_link *pl, char letter)
{
    struct session *self = pl->state;
    ssize_t sent;

    self->said = letter;
    sent = protocol_write(pl, &(struct iovec){&self->said, 1}, 1);
    self->owed = sent == LINKPOOL_EAGAIN;
    return sent == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int on_start(struct protocol_link *pl)
{
    return say(pl, 'H');
}

static int on_input(struct protocol_link *pl, unsigned events)
{
    struct session *self = pl->state;
    char letter;
    ssize_t got;

    if (events & LINKPOOL_WRITE && self->owed && say(pl, self->said))
        return LINKPOOL_ELOST;
    got = protocol_read(pl, &letter, 1);
    if (got < 0)
        return got == LINKPOOL_EAGAIN ? 0 : (int)got;
    if (letter != self->said)
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "another letter");
    return protocol_ready(pl);
}

static int on_released(struct protocol_link *pl)
{
    return say(pl, 'R') ? PROTOCOL_UNCLEAN : PROTOCOL_RESETTING;
}

const struct protocol fake_session = {
    .size = sizeof(struct protocol),
    .name = "fake_session",
    .link_size = sizeof(struct session),
    .start = on_start,
    .input = on_input,
    .released = on_released,
};
