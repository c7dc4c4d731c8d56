# file: link/heartbeat.c
# the interval alone says when the next probe goes, not the answer
s/due = link__answer_due\(link\);/due = fmin(link__answer_due(link), of(link)->sent_at + link->owner->terms->heartbeat.interval);/
s/if \(!awaits\(link\) && may_ask\(link\)/if ((!awaits(link) || of(link)->sent_at + link->owner->terms->heartbeat.interval <= now) \&\& may_ask(link)/
