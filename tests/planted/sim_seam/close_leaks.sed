# file: link/env_system.c
# a socket is not closed
s/return close\(fd\);/return fd < 0;/
