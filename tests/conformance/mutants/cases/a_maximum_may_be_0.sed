# file: pool/options.c
# red: XC17
# a maximum of 0 is taken
s/"max_line", options.max_line, 1,/"max_line", options.max_line, 0,/
