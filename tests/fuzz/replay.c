/* replay.c - runs a fuzz target over files, without libFuzzer: `replay FILE...`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
    MAX_INPUT = 1 << 20
};

int main(int argc, char **argv)
{
    static uint8_t data[MAX_INPUT];

    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");

        if (file == NULL) {
            perror(argv[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
        fclose(file);
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? 0 : 1; /* none at all is a mistake */
}
