# file: pool/release.c
# red: T80 T112 VA7 XE9
# giving up what is not waited for answers 0
/^int pool_cancel/,/^}/ s/^        return LINKPOOL_ESTATE;$/        return 0;/
