# file: pool/names.c
# a text that could not be remembered is its host's all the same
s/^    if \(!name->hh\.tbl\) \{/&\n        if (host)\n            host->names = name;/
