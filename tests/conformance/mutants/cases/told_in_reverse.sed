# file: pool/line.c
# red: T75
# outcomes are told in the reverse order of decision
s/DL_APPEND\(pool->to_tell, claim\)/DL_PREPEND(pool->to_tell, claim)/
