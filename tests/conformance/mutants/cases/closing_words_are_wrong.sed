# file: link/error.c
# red: T69
# who waited as the pool ends is told of a deadline, in words
s/return "draining or gone";/return "the deadline has passed, or so";/
