# file: pool/opening.c
# nobody is told that there is no memory for a link
s/^        while \(leases_want\(line\)\)/        while (false \&\& leases_want(line))/
