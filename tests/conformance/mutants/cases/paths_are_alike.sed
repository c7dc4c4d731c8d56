# file: link/address.c
# red: VF3 XB1
# of a path the first bytes alone are part of the key
s/snprintf\(text, LINK_ADDRESS_TEXT, "unix:%\.\*s", \(int\)length, name->sun_path\);/snprintf(text, LINK_ADDRESS_TEXT, "unix:%.*s", length > 14 ? 14 : (int)length, name->sun_path);/
