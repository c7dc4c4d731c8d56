# file: link/io.c
# red: XA15 XA17
# a reset of an idle link is left for the next holder
s/^        link__end\(link, said_reason\(link->owner, LINK_RESET\), link->owner->fail_errno\);$/        link__watch(link, 0);/
