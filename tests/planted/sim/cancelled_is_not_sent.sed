# file: pool/call_link.c
# a call that is given up after its request has gone is told that it was not sent
s/return link__fate\(call->lease\.channel, false\);/return POOL_NOT_SENT;/
