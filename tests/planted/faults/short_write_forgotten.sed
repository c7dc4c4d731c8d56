# file: link/protocol.c
# after a protocol's short write nobody waits for room
/^ssize_t protocol_write/,/^\}/ s/link__watch\(link, LINKPOOL_READ \| LINKPOOL_WRITE\);/link__watch(link, LINKPOOL_READ);/
