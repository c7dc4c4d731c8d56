# file: link/heartbeat_policy.c
# a round trip counts for a tenth of what it should
s/round_trip \* 1000\) \/ 100 /round_trip * 1000) \/ 1000 /
