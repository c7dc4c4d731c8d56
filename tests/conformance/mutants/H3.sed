# file: link/heartbeat_policy.c
# a watched link is asked again too soon
s/\.watch_interval = 5/.watch_interval = 4/
