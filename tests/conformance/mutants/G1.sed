# file: pool/members.c
s/^( *)if \(pool__kept_up\(target->hosts\[i\]\)\)/\1pool__bring_back(target->hosts[i]);\n&/
