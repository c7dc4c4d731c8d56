# verdicts.awk - of Criterion's TAP, a line each test that ran: id, name, passed or failed. The id is what the name begins
# with, up to the first _. A line of TAP is `ok - suite::name  (0.01s)` or `not ok - suite::name ...`.
/^(not )?ok - .*::/ && !/# SKIP/ {
    name = $0
    sub(/^(not )?ok - .*::/, "", name)
    sub(/[ :].*/, "", name)
    id = name
    sub(/_.*/, "", id)
    print id, name, /^not/ ? "failed" : "passed"
}
