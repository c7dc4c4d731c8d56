/* alone.c - a link on its own, and an owner that notes what it is told. */
#include <assert.h>
#include <string.h>

#include "tests/sim/seam/play.h"

static void told(struct play *p, enum event event)
{
    if (p->then)
        p->then(p, event);
}

static void on_connecting(struct link *link, unsigned attempt)
{
    note(link_data(link), 0, "connecting, attempt %u", attempt);
}

static void on_link_readable(struct channel *channel)
{
    struct play *p = link_data(channel_link(channel));
    char bytes[256];
    ssize_t got = channel_read(channel, bytes, sizeof bytes);

    note(p, 0, "link hears %ld: %.*s", (long)got, got > 0 ? (int)got : 0, bytes);
    if (got <= 0 && got != LINKPOOL_EAGAIN)
        channel_want(channel, 0);
}

static const struct channel_events link_events = {.readable = on_link_readable};

static void on_connected(struct link *link, struct channel *channel)
{
    struct play *p = link_data(link);

    p->channel = channel;
    channel_watch(channel, &link_events, LINKPOOL_READ);
    note(p, 0, "connected");
    told(p, LINK_IS_UP);
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct play *p = link_data(link);

    p->channel = NULL;
    note(p, 0, "disconnected: %s", link_reason_text(reason));
    told(p, LINK_IS_DOWN);
}

static void on_reconnect(struct link *link, unsigned attempt, double wait)
{
    note(link_data(link), wait, "waits after failure %u", attempt);
    told(link_data(link), LINK_WAITS);
}

static void on_stopped(struct link *link, enum link_reason reason)
{
    note(link_data(link), 0, "stopped: %s", link_reason_text(reason));
    told(link_data(link), LINK_STOPS);
}

void start_link(struct play *p)
{
    struct link_options o;

    link_options_init(&o);
    o.env = &p->env;
    o.backoff = &p->backoff;
    o.protocol = p->host.protocol;
    o.connect_timeout = p->host.connect_timeout;
    o.observer = &p->observer;
    o.connecting = on_connecting;
    o.connected = on_connected;
    o.disconnected = on_disconnected;
    o.reconnect = on_reconnect;
    o.stopped = on_stopped;
    o.data = p;
    p->link_driver = p->stage->driver(p->stage);
    assert(p->link_driver);
    p->link = link_new(p->link_driver, p->address[0], &o);
    must(p, p->link, "a link is made");
    note(p, 0, "start: %d", link_start(p->link));
}

void link_says(struct play *p, const char *text)
{
    ssize_t sent = p->channel ? channel_writev(p->channel, &(struct iovec){(void *)text, strlen(text)}, 1) : -1;

    note(p, 0, "link says %s: %ld", text, (long)sent);
}
