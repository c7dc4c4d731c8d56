# file: link/core.c
# red: XC6
# a timer is taken to be due when the alarm rings, be it early or not
s/&& node->due <= link__now\(core\);/\&\& node->due <= link__now(core) + 0.02;/
