# file: pool/acquire.c
# whoever comes does not mind those that have won and were not told
s/^    return \(link = next_link\(host, lease\)\) && link__shared\(link\)->n_promised;/    link = NULL;\n    return link;/
