/* Writes the bytes of files as tokens, two bytes each: what examples/letters.g reads.
 * usage: tokens OUT.bin FILE... */
#include <stdio.h>

int main(int argc, char **argv)
{
    FILE *to = argc > 2 ? fopen(argv[1], "wb") : NULL;
    if (!to) {
        fprintf(stderr, argc > 2 ? "%s: cannot be written\n" : "usage: tokens OUT.bin FILE...\n",
                argv[1]);
        return argc > 2 ? 1 : 2;
    }
    for (int i = 2; i < argc; i++) {
        FILE *from = fopen(argv[i], "rb");
        if (!from) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 1;
        }
        for (int byte; (byte = getc(from)) != EOF;) {
            putc(byte, to);
            putc(0, to);
        }
        fclose(from);
    }
    if (ferror(to) || fclose(to) != 0) {
        fprintf(stderr, "%s: cannot be written\n", argv[1]);
        return 1;
    }
    return 0;
}
