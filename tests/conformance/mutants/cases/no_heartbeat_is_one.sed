# file: link/heartbeat_policy.c
# red: T132
# links without a heartbeat are asked as well
s/^        return \(double\)INFINITY;$/        return 0.1;/
