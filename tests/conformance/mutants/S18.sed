# file: link/alone.c
# the time a reconnect took is measured from the start of the world
s/link__now\(alone->owner\.core\) - alone->lost_at;/link__now(alone->owner.core);/
