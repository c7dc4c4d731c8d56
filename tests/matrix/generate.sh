#!/bin/sh
# generate.sh - the list of public functions that the matrix must have a caller for, from the headers.
#
#     tests/matrix/generate.sh > tests/matrix/functions.h
#
# Comments, preprocessor lines and all that stands between braces are dropped; of what is left, each declaration with a
# parameter list is a function, named before its first parenthesis.
set -eu
cd "$(dirname "$0")/../.."

echo '/* functions.h - every public function of pool.h, link.h and call.h; made by generate.sh, checked by a test. */'
cat include/linkpool/pool.h include/linkpool/link.h include/linkpool/call.h | awk '
{ text = text $0 "\n" }
END {
    gsub(/\\\n/, " ", text)
    while ((at = index(text, "/*")) > 0) {
        rest = substr(text, at + 2)
        text = substr(text, 1, at - 1) " " substr(rest, index(rest, "*/") + 2)
    }
    n = split(text, lines, "\n")
    code = ""
    for (i = 1; i <= n; i++)
        if (lines[i] !~ /^[ \t]*#/ && lines[i] !~ /^extern "C"/)
            code = code lines[i] " "
    depth = 0
    declaration = ""
    for (i = 1; i <= length(code); i++) {
        c = substr(code, i, 1)
        if (c == "{")
            depth++
        else if (c == "}")
            depth = depth > 0 ? depth - 1 : 0
        else if (depth == 0 && c == ";") {
            if (match(declaration, /[a-z_0-9]+[ ]*\(/)) {
                name = substr(declaration, RSTART, RLENGTH - 1)
                gsub(/ /, "", name)
                print "FUNCTION(" name ")"
            }
            declaration = ""
        } else if (depth == 0)
            declaration = declaration c
    }
}' | LC_ALL=C sort
