# file: link/lease.c
# red: T88
# a protocol's state ends with each lease
s/^    answer = owner->protocol->released\(&link->protocol\);$/&\n    if (owner->protocol->end)\n        owner->protocol->end(\&link->protocol);/
