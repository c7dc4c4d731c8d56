/* error.c - every error has words of its own. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <linkpool/error.h>
#include <string.h>

enum {
    LAST = LINKPOOL_EPEER
};

Test(error, every_error_has_words_of_its_own)
{
    for (int error = 0; error >= LAST; error--) {
        cr_assert(ne(str, (char *)linkpool_strerror(error), ""));
        cr_assert(ne(str, (char *)linkpool_strerror(error), "unknown error"), "error %d", error);
        for (int other = 0; other > error; other--)
            cr_assert(ne(str, (char *)linkpool_strerror(error), (char *)linkpool_strerror(other)));
    }
}

Test(error, the_words_fit_the_error)
{
    cr_assert(eq(str, (char *)linkpool_strerror(0), "no error"));
    cr_assert(eq(str, (char *)linkpool_strerror(LINKPOOL_EINVAL), "an argument is wrong"));
    cr_assert(eq(str, (char *)linkpool_strerror(LINKPOOL_ENOMEM), "out of memory"));
    cr_assert(eq(str, (char *)linkpool_strerror(LINKPOOL_ETIMEDOUT), "the deadline has passed"));
    cr_assert(eq(str, (char *)linkpool_strerror(LINKPOOL_EADDRESS), "neither an address nor the name of a target"));
}

Test(error, what_is_no_error_is_unknown)
{
    static const int others[] = {1, LAST - 1, INT_MAX, INT_MIN};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert(eq(str, (char *)linkpool_strerror(others[i]), "unknown error"));
}
