# file: link/alone.c
# the record does not say how many failures there were
s/^    told\.attempt = alone->history\.attempt;$//
