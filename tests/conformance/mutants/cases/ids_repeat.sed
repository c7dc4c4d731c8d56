# file: link/link.c
# red: XB9
# ids of links repeat
s/^    link->id = \+\+core->serial;$/    link->id = ++core->serial % 64 + 1;/
