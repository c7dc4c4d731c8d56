/* client.c - the bare client: callers on a few connections, each with one request under way. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/framed/bare.h"

enum {
    SLOTS = 4096 /* of the table of requests under way, by id; far more than a link's callers */
};

struct caller {
    struct link *link;
    unsigned char request[BARE_PAYLOAD];
};

/* Who waits for which answer: ids are given in turn, so that a slot is free again long before it is needed. */
struct link {
    struct bare_client *client;
    struct bare_conn *conn;
    uint32_t last_id;
    struct {
        struct caller *caller;
        uint32_t id;
    } asked[SLOTS];
};

struct bare_client {
    int epoll;
    unsigned n_links, n_callers, greeted;
    unsigned to_ask, to_hear;
    struct link *links;
    struct caller *callers;
};

static void ask(struct caller *caller)
{
    struct link *link = caller->link;
    uint32_t id = ++link->last_id;

    if (link->asked[id % SLOTS].caller)
        bare_die("a request that is never answered");
    link->asked[id % SLOTS].caller = caller;
    link->asked[id % SLOTS].id = id;
    link->client->to_ask--;
    bare_put(link->conn, BARE_REQUEST, id, caller->request, BARE_PAYLOAD);
}

static void on_answer(struct link *link, uint32_t id, const unsigned char *payload, uint32_t n)
{
    struct caller *caller = link->asked[id % SLOTS].caller;

    if (!caller || link->asked[id % SLOTS].id != id)
        bare_die("an answer to nobody");
    link->asked[id % SLOTS].caller = NULL;
    if (n != BARE_PAYLOAD || memcmp(payload, caller->request, BARE_PAYLOAD))
        bare_die("another's answer");
    link->client->to_hear--;
    if (link->client->to_ask)
        ask(caller);
}

static void on_frame(struct bare_conn *conn, unsigned type, uint32_t id, const unsigned char *payload, uint32_t n)
{
    struct link *link = conn->data;

    if (type == BARE_ANSWER)
        on_answer(link, id, payload, n);
    else if (type == BARE_HELLO_ACK)
        link->client->greeted++;
}

static void turn(struct bare_client *client)
{
    struct epoll_event events[64];
    int n = epoll_wait(client->epoll, events, 64, -1);

    for (int i = 0; i < n; i++)
        if (bare_ready(events[i].data.ptr, events[i].events, on_frame))
            bare_die("the server is gone");
}

static void open_link(struct link *link, uint16_t port)
{
    static const unsigned char hello[8] = {0, 0, 0, 1, 0, 16, 0, 0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        bare_die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link->conn = bare_new(fd, link->client->epoll, link);
    bare_put(link->conn, BARE_HELLO, 0, hello, sizeof hello);
    bare_write(link->conn);
}

struct bare_client *bare_client_new(uint16_t port, unsigned n_links, unsigned n_callers)
{
    struct bare_client *client = calloc(1, sizeof *client);

    if (!client || !(client->links = calloc(n_links, sizeof *client->links)) ||
        !(client->callers = calloc(n_callers, sizeof *client->callers)))
        bare_die("out of memory");
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    client->n_links = n_links;
    client->n_callers = n_callers;
    for (unsigned i = 0; i < n_links; i++) {
        client->links[i].client = client;
        open_link(&client->links[i], port);
    }
    for (unsigned i = 0; i < n_callers; i++) {
        client->callers[i].link = &client->links[i % n_links];
        memcpy(client->callers[i].request, &i, sizeof i);
    }
    while (client->greeted < n_links)
        turn(client);
    return client;
}

void bare_client_call(struct bare_client *client, unsigned n)
{
    client->to_ask = client->to_hear = n;
    for (unsigned i = 0; i < client->n_callers && client->to_ask; i++)
        ask(&client->callers[i]);
    for (unsigned i = 0; i < client->n_links; i++)
        bare_write(client->links[i].conn);
    while (client->to_hear)
        turn(client);
}

void bare_client_free(struct bare_client *client)
{
    for (unsigned i = 0; i < client->n_links; i++) {
        close(client->links[i].conn->fd);
        free(client->links[i].conn);
    }
    close(client->epoll);
    free(client->links);
    free(client->callers);
    free(client);
}
