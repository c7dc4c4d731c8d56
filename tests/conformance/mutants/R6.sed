# file: link/alone.c
# whoever fails at the first connect fails at every loss too
s/alone->options\.fail_first && !alone->was_ready/alone->options.fail_first/
