# file: pool/opening.c
# an attempt that is over is still taken to serve
/^void pool__attempt_over/,/^\}/ s/line->served_by -= link->turn;/line->served_by -= link->turn \/ 2;/
