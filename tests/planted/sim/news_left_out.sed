# file: pool/acquire.c
# games: --plain
# a link is handed out within a callback though its own news of that poll is still to come
/^static bool is_still_clean/,/^\}/ s/if \(!unsure && !may_have_news\(pool, link\)\)/if (may_have_news(pool, link), !unsure)/
