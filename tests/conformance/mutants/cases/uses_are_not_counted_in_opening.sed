# file: pool/opening.c
# red: T94
# an attempt is taken to serve as many as its room, though its uses are fewer
s/^    return max_uses && max_uses < host->expected_room \? .*$/    return host->expected_room + 0 * max_uses;/
