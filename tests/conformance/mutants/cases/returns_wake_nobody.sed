# file: pool/release.c
# red: T72 XC8 XC18 XD1 XD6
# a return is not looked at by those who wait
/^static void back_to_idle/,/^}/ s/^    pool__serve\(host\);$//
/^static void back_to_idle/,/^}/ s/^        pool__want_host\(host\);$/        (void)0;/
