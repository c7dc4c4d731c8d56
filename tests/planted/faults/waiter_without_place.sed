# file: pool/line.c
# who waits a time of its own waits without a place for it
/^int pool__wait\(/,/^\}/ s/return LINKPOOL_ENOMEM;/;/
