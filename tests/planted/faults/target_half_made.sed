# file: pool/target.c
# a target that could not be made leaves its name in memory
/^no_state:/,/^no_name:/ s/^ *link__release.*$/    ;/
