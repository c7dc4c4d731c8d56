# file: link/heap.c
# a heap has its room before the memory for it
s/^        if \(!slots\)$/        heap->room = room;\n&/
