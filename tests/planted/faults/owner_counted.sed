# file: link/alone.c
# an owner that is not to be is counted
s/^    if \(alone\)$/    if (core)/
