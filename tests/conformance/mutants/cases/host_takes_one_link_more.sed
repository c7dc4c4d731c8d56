# file: pool/opening.c
# red: T72 T91 VD6 XC15 XE2
# a host has one link more than max_links
s/pool__sockets\(host\) - makes_way < pool__options/pool__sockets(host) - makes_way <= pool__options/
