# file: pool/members.c
# red: T64 XF8 XI1
# what is held of a host that left the list ends
/^static void leave/,/^}/ s/^                    pool__retire\(link, LINK_DRAINED\);$/                    link__end(link, LINK_DRAINED, 0);/
