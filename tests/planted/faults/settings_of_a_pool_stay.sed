# file: pool/pool.c
# a pool that is not to be leaves its settings in memory
/^no_timer:/,/^no_settings:/ s/pool__settings_drop\(options\.env, pool->settings\);//
