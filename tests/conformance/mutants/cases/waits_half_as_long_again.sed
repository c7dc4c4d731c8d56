# file: link/link.c
# red: T9 T11 VG1 XH1
# a backoff lasts half as long again as was drawn
s/^        arm\(link, next.delay\);$/        arm(link, next.delay * 1.5);/
