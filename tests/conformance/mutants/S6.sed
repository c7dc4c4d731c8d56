# file: link/alone.c
# stop does not forget the failures
/^void link_stop\(/,/^\}/ s/^    alone->history = \(struct backoff_history\)\{0\};$//
