# file: pool/pool.c
# red: T76 VC5 XC20
# a link that comes up and finds nobody is closed
/^static void on_served/,/^}/ s/^    if \(\(pool->draining \|\| host->draining\) && !link__held\(link\) && !pool__oldest_taker\(host\)\) \{$/    if (!link__held(link) \&\& !pool__kept_up(host)) {/
