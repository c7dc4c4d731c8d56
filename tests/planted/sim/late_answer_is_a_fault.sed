# file: link/framed.c
# the answer to a request that was given up ends the link
s/^    self->unheard\+\+;/    self->unheard += 0;/
