# file: link/heartbeat.c
# a link that misses an answer stays where it is among those to be lent
/history\.misses == 1\)/,/^    \}/s/^        tell_trust\(link\);/        (void)tell_trust;/
