# file: pool/acquire.c
# red: T71 T98 VA9 VD6
# a line holds one more than max_line
s/line->n >= max_line/line->n > max_line/
