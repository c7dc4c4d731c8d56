# file: pool/opening.c
# red: VG6 XD8 XD10 XD11
# a host opens as many at once as are wanted
s/^           pool__opening\(host\) < host->connect_limit;/           true;/
