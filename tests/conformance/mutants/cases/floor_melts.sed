# file: pool/host.c
# red: XG1 XG2 XG5 XG17
# what is kept up falls quiet too
/^bool pool__one_less_is_too_few/,/^}/ s/^    return kept_up .*$/    return kept_up == UINT32_MAX;/
