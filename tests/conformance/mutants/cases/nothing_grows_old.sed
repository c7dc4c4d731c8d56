# file: link/link.c
# red: XG12 XG16
# links never grow too old
s/^    return max_age > 0 \? .*$/    return max_age > 1e300 ? link->since : INFINITY;/
