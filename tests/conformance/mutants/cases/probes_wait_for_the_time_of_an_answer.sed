# file: link/heartbeat.c
# red: T135
# an interval begins when an answer would have been late
s/return heartbeat->heard_at \+ interval/return heartbeat->heard_at + policy->timeout + interval/
