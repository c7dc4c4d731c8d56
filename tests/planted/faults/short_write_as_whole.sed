# file: link/protocol.c
# a protocol's short write counts as the whole
s/^    if \(sent >= 0 && \(size_t\)sent == all\) \{/    if (sent >= 0) {\n        sent = (ssize_t)all;/
