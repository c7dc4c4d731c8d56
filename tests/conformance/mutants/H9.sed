# file: link/link.c
# a drain ends its idle links though an answer is under way
/^void link__part\(/,/^\}/ s/link__answer_due\(link\) >/-link__answer_due(link) >/
