# file: link/alone.c
# an owner whose link is not to be stays in memory
/^        if \(!\(alone->link = link__new/,/^        \}/ s/link__release\(core->env, alone, size\);//
