# file: link/heartbeat.c
# red: XK5 XK6
# a link that is leased whole is asked too
s/ && \(link__is_shared\(link\) \|\| !link__held\(link\)\);/;/
