# file: link/driver_ev.c
# what came with the poll is lost when the interest changes
s/^    if \(pending\) .*$/    if (0)/
