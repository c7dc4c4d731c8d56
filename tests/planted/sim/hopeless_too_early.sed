# file: pool/fanout.c
# a group is told that too many failed while enough may still answer
s/group->failed > group->n - wanted\(group\)/group->failed >= group->n - wanted(group)/
