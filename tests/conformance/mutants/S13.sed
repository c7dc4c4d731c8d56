# file: link/alone.c
# an explicit start from offline goes on counting where it left off
/^int link_start\(/,/^\}/ s/^    alone->history = \(struct backoff_history\)\{0\};$//
