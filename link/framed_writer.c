/* framed_writer.c - see framed_writer.h. */
#include "link/framed_writer.h"

#include <string.h>
#include <utlist.h>

#include "link/hints.h"
#include "linkpool/error.h"

enum {
    PACKED = 1024 /* bytes up to which a frame lies with others */
};

/** A block of small frames. Their bytes lie side by side from its start on, what is known of them from its end on. */
struct framed_pack {
    unsigned n, n_bytes; /* frames put there, and their bytes */
    unsigned n_left;     /* of these frames, still in line: with the last the block goes */
    unsigned char bytes[];
};

/* ---- where frames lie ---- */

static bool has_room(const struct framed_pack *pack, size_t size)
{
    return sizeof *pack + pack->n_bytes + size + (pack->n + 1) * sizeof(struct framed_out) <= LINK_BLOCK;
}

LINK_RARE static struct framed_pack *new_pack(struct framed_writer *writer)
{
    struct framed_pack *pack = link__block_take(writer->blocks, writer->env);

    if (!pack)
        return NULL;
    *pack = (struct framed_pack){0};
    return writer->pack = pack;
}

static inline struct framed_out *new_packed(struct framed_writer *writer, size_t size)
{
    struct framed_pack *pack = writer->pack;
    struct framed_out *out;

    if ((!pack || !has_room(pack, size)) && !(pack = new_pack(writer)))
        return NULL;
    out = (struct framed_out *)((char *)pack + LINK_BLOCK) - ++pack->n;
    out->pack = pack;
    out->bytes = pack->bytes + pack->n_bytes;
    pack->n_bytes += (unsigned)size;
    pack->n_left++;
    return out;
}

LINK_RARE static struct framed_out *new_alone(struct framed_writer *writer, size_t size)
{
    struct framed_out *out = writer->env->realloc(writer->env->data, NULL, 0, sizeof *out + size);

    if (!out)
        return NULL;
    out->pack = NULL;
    out->bytes = (unsigned char *)(out + 1);
    return out;
}

LINK_RARE static void free_pack(struct framed_writer *writer, struct framed_pack *pack)
{
    if (writer->pack == pack)
        writer->pack = NULL;
    link__block_give(writer->blocks, writer->env, pack);
}

static inline void free_out(struct framed_writer *writer, struct framed_out *out)
{
    struct framed_pack *pack = out->pack;

    if (!pack)
        writer->env->realloc(writer->env->data, out, sizeof *out + out->size, 0);
    else if (!--pack->n_left)
        free_pack(writer, pack);
}

/* ---- in line ---- */

static inline struct framed_out *add(struct framed_writer *writer, uint8_t type, void *owner, size_t size)
{
    struct framed_out *out = size <= PACKED ? new_packed(writer, size) : new_alone(writer, size);

    if (!out)
        return NULL;
    out->owner = owner;
    out->size = (uint32_t)size;
    out->gone = 0;
    out->type = type;
    out->begun = false;
    DL_APPEND(writer->first, out);
    writer->waiting += size;
    writer->n_pongs += type == FRAMED_PONG;
    return out;
}

static inline void drop(struct framed_writer *writer, struct framed_out *out)
{
    DL_DELETE(writer->first, out);
    writer->waiting -= out->size - out->gone;
    writer->n_pongs -= out->type == FRAMED_PONG;
    free_out(writer, out);
}

struct framed_out *framed__put(struct framed_writer *writer, const struct framed_message *message)
{
    size_t n = message->n;
    struct framed_out *out = add(writer, message->type, message->owner, FRAMED_HEAD + n);

    if (!out)
        return NULL;
    framed__put_head(out->bytes, message->type, message->id, n);
    if (n)
        memcpy(out->bytes + FRAMED_HEAD, message->payload, n);
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
    const unsigned char *end = NULL;
    uint32_t id = writer->last_id;
    struct framed_out *out;
    int n = 0;

    DL_FOREACH (writer->first, out) {
        bool adjoins = out->bytes == end;
        if (n == max && !adjoins)
            break;
        if (out->type == FRAMED_REQUEST && !out->begun)
            framed__put32(out->bytes + 8, ++id);
        if (adjoins)
            parts[n - 1].iov_len += out->size;
        else
            parts[n++] = (struct iovec){out->bytes + out->gone, out->size - out->gone};
        end = out->bytes + out->size;
    }
    return n;
}

/* The socket took all that was in line, as it mostly does: nothing is taken out one by one. */
static void took_all(struct framed_writer *writer, void (*begun)(void *data, void *owner, uint32_t id), void *data)
{
    struct framed_out *out = writer->first, *next;

    writer->first = NULL;
    writer->waiting = 0;
    writer->n_pongs = 0;
    for (; out; out = next) {
        next = out->next;
        if (out->type == FRAMED_REQUEST && !out->begun)
            begun(data, out->owner, ++writer->last_id);
        free_out(writer, out);
    }
}

void framed__took(
    struct framed_writer *writer, size_t n, void (*begun)(void *data, void *owner, uint32_t id), void *data)
{
    if (n == writer->waiting) {
        took_all(writer, begun, data);
        return;
    }
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
