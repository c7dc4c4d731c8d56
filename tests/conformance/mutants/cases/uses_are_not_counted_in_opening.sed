# file: pool/opening.c
# red: T94
# an attempt is taken to serve as many as its room, though its uses are fewer
s/^    return within\(within\(host->expected_room, .*$/    return within(host->expected_room, options->max_channels);/
