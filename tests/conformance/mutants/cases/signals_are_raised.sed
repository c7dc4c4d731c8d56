# file: link/env_system.c link/transport_tcp.c
# red: XJ5
# writing to a peer that has gone raises SIGPIPE
s/flags \| MSG_NOSIGNAL/flags/
s/&message, MSG_NOSIGNAL\)/\&message, 0)/
