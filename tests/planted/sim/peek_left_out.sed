# file: pool/acquire.c
# a link is lent again in its turn without a look
/^static bool is_still_clean/,/^\}/ s/if \(!unsure && !may_have_news\(pool, link\)\)/if (!may_have_news(pool, link))/
