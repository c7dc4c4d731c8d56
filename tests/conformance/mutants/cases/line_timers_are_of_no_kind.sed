# file: pool/line.c
# red: XC7
# the timer of a line is taken for another
s/^    line->timer.kind = POOL_NODE_LINE;$/    line->timer.kind = line->target ? POOL_NODE_LINE : POOL_NODE_DRAIN;/
