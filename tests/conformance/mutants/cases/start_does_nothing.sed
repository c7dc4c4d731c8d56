# file: pool/target.c
# red: T1 T4 T5 T66
# pool_target_start() opens nothing
/^int pool_target_start/,/^}/ s/^            pool__bring_back\(target->hosts\[i\]\);$/            (void)0;/
