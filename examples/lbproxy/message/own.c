/* own.c - answers of the proxy's own: a status and one line that says why. */
#include "examples/lbproxy/message/compose.h"
#include "examples/lbproxy/message/writer.h"

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 414:
        return "URI Too Long";
    case 417:
        return "Expectation Failed";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return ""; /* it may be empty */
    }
}

static uint64_t whole_seconds(double seconds)
{
    const double most = 1e9; /* and a number that fits */
    uint64_t whole = seconds < most ? (uint64_t)seconds : (uint64_t)most;

    return whole + ((double)whole < seconds && seconds < most);
}

static void put_string_field(struct writer *writer, const char *name, const char *value)
{
    put_field(writer, (struct text){name, strlen(name)}, (struct text){value, strlen(value)});
}

static void put_number_field(struct writer *writer, const char *name, uint64_t value)
{
    put(writer, name, strlen(name));
    PUT(writer, ": ");
    put_number(writer, value);
    PUT(writer, "\r\n");
}

/* A reason may hold what a peer has sent: a control byte in it becomes a blank. */
static void put_line(struct writer *writer, const char *line)
{
    for (; *line != '\0'; line++)
        put(writer, (unsigned char)*line < ' ' || *line == 0x7f ? " " : line, 1);
    PUT(writer, "\n");
}

size_t compose_own(char *out, size_t room, const struct own_answer *answer)
{
    struct writer writer = writer_begin(out, room);

    PUT(&writer, "HTTP/1.1 ");
    put_number(&writer, answer->status);
    PUT(&writer, " ");
    put(&writer, reason_of(answer->status), strlen(reason_of(answer->status)));
    PUT(&writer, "\r\nContent-Type: text/plain\r\n");
    put_number_field(&writer, "Content-Length", strlen(answer->line) + 1);
    if (answer->retry_after > 0)
        put_number_field(&writer, "Retry-After", whole_seconds(answer->retry_after));
    if (answer->allow != NULL)
        put_string_field(&writer, "Allow", answer->allow);
    if (answer->close)
        PUT(&writer, "Connection: close\r\n");
    else if (answer->client_minor == 0)
        PUT(&writer, "Connection: keep-alive\r\n");
    PUT(&writer, "\r\n");
    if (!answer->head)
        put_line(&writer, answer->line);
    return writer_end(&writer);
}
