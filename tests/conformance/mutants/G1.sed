# file: pool/members.c
s/^( *)pool__keep_up\(target->hosts\[i\]\);/\1pool__bring_back(target->hosts[i]);\n&/
