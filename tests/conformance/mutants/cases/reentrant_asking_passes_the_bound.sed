# file: pool/opening.c
# red: XE12
# what is asked for while somebody is told passes max_links
s/pool__sockets\(host\) - makes_way < pool__options\(host\)->max_links/pool__sockets(host) - makes_way < pool__options(host)->max_links + (host->uses > 2)/
