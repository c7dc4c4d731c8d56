# file: link/alone.c
# the policy is not told how long it has been
s/alone->history\.elapsed = now - alone->first_failure;/alone->history.elapsed = 0;/
