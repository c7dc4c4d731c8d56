# file: link/framed_send.c
# of those that were refused for want of room only the first is told that there is some
s/^    while \(self->refused && fits\(self, self->refused->need\)\) \{/    if (self->refused \&\& fits(self, self->refused->need)) {/
s/^    while \(!error && self->refused && /    while (!error \&\& false \&\& self->refused \&\& /
