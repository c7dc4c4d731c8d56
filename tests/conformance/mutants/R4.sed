# file: link/figures.c
# a link has the same number of a connection for life
s/\.connection = link->fsm\.generation/.connection = link->id/
