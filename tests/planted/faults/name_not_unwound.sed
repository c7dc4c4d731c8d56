# file: pool/names.c
# a text that could not be remembered stays in memory
/^    if \(!name->hh\.tbl\) \{/,/^    \}/ s/^ *link__release.*$//
