# file: link/alone.c
# the attempt begins within link_start() instead of at the end of the turn
s/^    alone->wanted = true;$/    alone->wanted = true, begin(alone);/
