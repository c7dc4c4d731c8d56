# file: link/heartbeat.c
# a silent link is given up one missed answer later than its policy says
s/history\.misses >= /history.misses > /
