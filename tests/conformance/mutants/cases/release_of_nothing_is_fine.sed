# file: pool/release.c
# red: T97 T112 VA7 XE6 XE8 XE9 XF10
# giving back what is over answers 0
/^int pool_release/,/^}/ s/^        return LINKPOOL_ESTATE;$/        return 0;/
