# file: pool/opening.c
# a host may have one socket more
/^bool pool__can_open/,/^\}/ s/pool__sockets\(host\) < /pool__sockets(host) <= /
