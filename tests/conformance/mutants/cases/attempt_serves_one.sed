# file: pool/opening.c
# red: T90
# an attempt is taken to serve one lease, whatever its room
s/will_serve\(host\)\);/1);/
