# file: pool/names.c
# a text that could not be remembered is counted
s/^    if \(!name->hh\.tbl\) \{/&\n        pool->n_names++;/
