# file: link/core.c
# a connect that is over its time is said to be unreachable
s/^            link__end\(link, LINK_TIMED_OUT, 0\);$/            link__end(link, LINK_UNREACHABLE, 0);/
