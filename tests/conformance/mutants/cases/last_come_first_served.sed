# file: pool/line.c
# red: T75 XD1 XD3
# the line is a stack
s/while \(before && before->ticket > claim->ticket\)/while (before)/
