# file: pool/call_link.c
# what is lost was not sent
s/^    note_fate\(call, call->lease\.fate\);$//
