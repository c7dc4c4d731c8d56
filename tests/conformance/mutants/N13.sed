# file: link/protocol.c
# a write that fails leaves the link as it is
s/^        link__end\(link, link__reason_of_errno\(errno\), errno\); \/\* while it ends already.*$/        return LINKPOOL_EAGAIN;/
