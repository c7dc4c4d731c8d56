# file: pool/host.c
# red: XG6
# an idle link lives a hundredth longer than its time
s/double timeout = pool__options\(host\)->idle_timeout, now/double timeout = 1.01 * pool__options(host)->idle_timeout, now/
