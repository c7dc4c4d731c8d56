# file: pool/target.c
# red: XM3 XM5
# pickers are given no random bits
s/target->draw = random_bits\(/target->draw = 0 * random_bits(/
