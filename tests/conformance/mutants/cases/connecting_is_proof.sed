# file: pool/pool.c
# red: T9 VG1 XH1 XH3
# a connect that succeeds forgets all failures, before the handshake
s/^    if \(from == LINK_HANDSHAKING && to == LINK_READY\)$/    if (from == LINK_CONNECTING \&\& to == LINK_HANDSHAKING)\n        host->failures = 0;\n&/
