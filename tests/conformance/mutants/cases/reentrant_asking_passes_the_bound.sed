# file: pool/opening.c
# red: XE12
# what is asked for while somebody is told passes max_links
s/pool__sockets\(host\) < pool__options\(host\)->max_links && pool__opening/pool__sockets(host) < pool__options(host)->max_links + (host->uses > 2) \&\& pool__opening/
