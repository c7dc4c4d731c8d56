/* error.c - what each error says.
 *
 * The switch has no default, so that the compiler names a code without words. */
#include <linkpool/error.h>

const char *linkpool_strerror(int error)
{
    if (error == 0)
        return "no error";
    switch ((enum linkpool_error)error) {
    case LINKPOOL_EINVAL:
        return "an argument is wrong";
    case LINKPOOL_ESTATE:
        return "not possible in this state";
    case LINKPOOL_ENOMEM:
        return "out of memory";
    case LINKPOOL_EFULL:
        return "a bound is reached";
    case LINKPOOL_ETIMEDOUT:
        return "the deadline has passed";
    case LINKPOOL_EUNAVAILABLE:
        return "every host is down";
    case LINKPOOL_ECLOSED:
        return "draining or gone";
    case LINKPOOL_EADDRESS:
        return "neither an address nor the name of a target";
    case LINKPOOL_EAGAIN:
        return "nothing to read or no room to write yet";
    case LINKPOOL_ELOST:
        return "the link has ended";
    case LINKPOOL_ECANCELLED:
        return "given up";
    case LINKPOOL_EPEER:
        return "the peer answered with an error";
    case LINKPOOL_EOPTION:
        return "this transport or protocol cannot do that";
    }
    return "unknown error";
}
