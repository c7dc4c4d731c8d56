# file: link/heartbeat.c
# a link that one holder has all of is asked as well
s/ && \(link__is_shared\(link\) \|\| !link__held\(link\)\);/;/
