# file: pool/members.c
s/^( *)if \(is_used \|\| pool__options\(target->hosts\[i\]\)->min_links\).*$/\1pool__bring_back(target->hosts[i]);\n&/
