# file: pool/line.c
# red: XE10
# a wait is taken off the histogram
s/wait_histogram\[bucket\]\+\+/wait_histogram[bucket]--/
