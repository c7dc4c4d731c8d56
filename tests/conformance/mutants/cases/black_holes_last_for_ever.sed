# file: link/core.c
# red: T4 VG7 XK1
# an attempt that nobody answers never ends
s/^    return link__now\(link__core\(link\)\) >= link->since \+ .*;$/    return link__now(link__core(link)) >= link->since + 1000 * link->owner->terms->connect_timeout;/
/^    case LINK_RESETTING:$/,/break;/ s/link__end\(link, LINK_TIMED_OUT, 0\);/(void)link;/
