# file: pool/line.c
# a lease past its deadline is told something else
s/pool__fail\(lease, LINKPOOL_ETIMEDOUT\);/pool__fail(lease, LINKPOOL_EUNAVAILABLE);/
