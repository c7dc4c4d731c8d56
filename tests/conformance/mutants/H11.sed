# file: link/alone.c
# links draw from three moments only
s/link__draw\(alone->owner\.core\)\);/rint(2 * link__draw(alone->owner.core)) \/ 2);/
