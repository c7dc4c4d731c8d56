# file: link/alone.c
# stop does not take back an attempt that is about to begin
/^void link_stop\(/,/^\}/ s/^    alone->wanted = false;$//
