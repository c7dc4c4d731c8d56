# file: pool/line.c
# red: T68
# deadlines are a little late
s/claim->deadline = claim->asked \+ \((.*)\);$/claim->deadline = claim->asked + (\1) + 1e-5;/
