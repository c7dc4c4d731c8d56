# file: pool/call.c
# a call whose request may have been done is tried again
s/ \|\| \(call->fate != POOL_NOT_SENT && !\(call->flags & POOL_CALL_SAFE_TO_REPEAT\)\)\)/)/
