# file: pool/options.c
# red: XG10
# by default idle links stay
s/\.idle_timeout = 55,/.idle_timeout = 0,/
