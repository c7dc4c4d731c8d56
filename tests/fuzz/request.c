/* request.c - any bytes as requests, one behind the other: see check.h. The first three bytes say how they are cut. */
#include <stdint.h>

#include "tests/message/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t at[2];

    if (n < 3)
        return 0;
    at[0] = data[1];
    at[1] = at[0] + data[2];
    check_messages(MESSAGE_REQUEST, (const char *)data + 3, n - 3, (data[0] & 1) != 0 ? 1024 : 65536,
        &(struct cuts){at, 2, data[0] >> 1});
    return 0;
}
