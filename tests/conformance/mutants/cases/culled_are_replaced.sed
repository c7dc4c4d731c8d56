# file: pool/pool.c
# red: T105 XG1
# what fell quiet is opened again
/^static void on_settled/,/^}/ s/^    pool__see_host\(host\);$/    host->start_asked = host->start_asked || end->reason == LINK_IDLE_TIMEOUT;\n&/
