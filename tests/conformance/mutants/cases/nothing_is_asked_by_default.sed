# file: pool/options.c
# red: XK8 XA16
# pools have no heartbeat unless they are told
s/\.heartbeat = &heartbeat_default,/.heartbeat = \&heartbeat_none,/
