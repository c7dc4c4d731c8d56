# file: link/heartbeat.h
# the observer is told too soon
s/HEARTBEAT_MANY = 100/HEARTBEAT_MANY = 90/
