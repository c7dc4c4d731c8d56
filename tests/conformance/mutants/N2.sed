# file: link/io.c
# a failed connect is followed by an event of its own for its close notice
s/^(        link__end\(link, said_reason\(owner, LINK_UNREACHABLE\), owner->fail_errno\));$/\1, link__end(link, LINK_CLOSED_BY_PEER, 0);/
