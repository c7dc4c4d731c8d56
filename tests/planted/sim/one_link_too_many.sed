# file: pool/opening.c
# a host may have one socket more
/^static bool can_open/,/^\}/ s/pool__sockets\(host\) - makes_way < /pool__sockets(host) - makes_way <= /
