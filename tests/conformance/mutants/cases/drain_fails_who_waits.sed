# file: pool/pool.c
# red: XF14
# who waited when the pool began to drain is failed at once
/^int pool_drain/,/^}/ s/^    close_targets\(pool\);$/&\n    fail_all(pool);/
