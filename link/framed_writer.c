/* framed_writer.c - see framed_writer.h. */
#include "link/framed_writer.h"

#include <string.h>
#include <utlist.h>

#include "linkpool/error.h"

static struct framed_out *add(struct framed_writer *writer, uint8_t type, void *owner, size_t size)
{
    struct framed_out *out = writer->env->realloc(writer->env->data, NULL, 0, sizeof *out + size);

    if (!out)
        return NULL;
    *out = (struct framed_out){.owner = owner, .size = (uint32_t)size, .type = type};
    DL_APPEND(writer->first, out);
    writer->waiting += size;
    writer->n_pongs += type == FRAMED_PONG;
    return out;
}

static void drop(struct framed_writer *writer, struct framed_out *out)
{
    DL_DELETE(writer->first, out);
    writer->waiting -= out->size - out->gone;
    writer->n_pongs -= out->type == FRAMED_PONG;
    writer->env->realloc(writer->env->data, out, sizeof *out + out->size, 0);
}

struct framed_out *framed__put(struct framed_writer *writer, const struct framed_message *message)
{
    struct framed_out *out = add(writer, message->type, message->owner, FRAMED_HEAD + message->n);

    if (!out)
        return NULL;
    framed__put_head(out->bytes, message->type, message->id, message->n);
    if (message->n)
        memcpy(out->bytes + FRAMED_HEAD, message->payload, message->n);
    return out;
}

int framed__direct(struct framed_writer *writer, struct framed_message *message, unsigned char head[FRAMED_HEAD],
    struct iovec parts[2])
{
    if (message->type == FRAMED_REQUEST)
        message->id = writer->last_id + 1;
    framed__put_head(head, message->type, message->id, message->n);
    parts[0] = (struct iovec){head, FRAMED_HEAD};
    parts[1] = (struct iovec){(void *)message->payload, message->n};
    return message->n ? 2 : 1;
}

int framed__sent(
    struct framed_writer *writer, const struct framed_message *message, const unsigned char head[FRAMED_HEAD], size_t n)
{
    size_t all = FRAMED_HEAD + message->n, of_head = n < FRAMED_HEAD ? FRAMED_HEAD - n : 0;
    struct framed_out *out;

    if (message->type == FRAMED_REQUEST)
        writer->last_id = message->id;
    if (n == all)
        return 0;
    if (!(out = add(writer, message->type, message->owner, all - n)))
        return LINKPOOL_ENOMEM;
    out->begun = true;
    memcpy(out->bytes, head + FRAMED_HEAD - of_head, of_head);
    if (message->n)
        memcpy(out->bytes + of_head, (const char *)message->payload + message->n - (out->size - of_head),
            out->size - of_head);
    return 0;
}

int framed__gather(struct framed_writer *writer, struct iovec *parts, int max)
{
    uint32_t id = writer->last_id;
    struct framed_out *out;
    int n = 0;

    DL_FOREACH (writer->first, out) {
        if (n == max)
            break;
        if (out->type == FRAMED_REQUEST && !out->begun)
            framed__put32(out->bytes + 8, ++id);
        parts[n++] = (struct iovec){out->bytes + out->gone, out->size - out->gone};
    }
    return n;
}

void framed__took(
    struct framed_writer *writer, size_t n, void (*begun)(void *data, void *owner, uint32_t id), void *data)
{
    while (n) {
        struct framed_out *out = writer->first;
        size_t left = out->size - out->gone, taken = n < left ? n : left;
        if (out->type == FRAMED_REQUEST && !out->begun)
            begun(data, out->owner, ++writer->last_id);
        out->begun = true;
        out->gone += (uint32_t)taken;
        writer->waiting -= taken;
        n -= taken;
        if (out->gone == out->size)
            drop(writer, out);
    }
}

void framed__take_back(struct framed_writer *writer, struct framed_out *out)
{
    drop(writer, out);
}

void framed__drop_unbegun(struct framed_writer *writer)
{
    struct framed_out *out, *next;

    DL_FOREACH_SAFE (writer->first, out, next)
        if (!out->begun)
            drop(writer, out);
}

void framed__writer_free(struct framed_writer *writer)
{
    while (writer->first)
        drop(writer, writer->first);
}
