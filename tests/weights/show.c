/* Prints a safetensors file that gplan or emitted code wrote: NAME DTYPE [3,4] NUMBER... a line,
 * numbers of 16 bits as their bits.
 * The entries stand as both write them: dtype, shape, data_offsets; what is before the first is
 * passed over. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_number(const char *dtype, const char *from)
{
    float single;
    int32_t whole;
    uint16_t half;
    if (strcmp(dtype, "F32") == 0) {
        memcpy(&single, from, 4);
        printf(" %g", (double)single);
    } else if (strcmp(dtype, "I32") == 0) {
        memcpy(&whole, from, 4);
        printf(" %ld", (long)whole);
    } else if (strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0) {
        memcpy(&half, from, 2);
        printf(" %04x", (unsigned)half);
    } else {
        printf(" %u", (unsigned char)*from);
    }
}

static int size_of(const char *dtype)
{
    return strcmp(dtype, "U8") == 0 ? 1 : strstr(dtype, "F16") ? 2 : 4;
}

int main(int count, char **argument)
{
    static char file[1 << 20];
    uint64_t header;
    FILE *from = count > 1 ? fopen(argument[1], "rb") : NULL;
    if (!from || fread(file, 1, sizeof file - 1, from) < 8)
        return 1;
    memcpy(&header, file, 8);
    if (header % 8 != 0)
        return 1;
    const char *data = file + 8 + header;
    for (char *at = file + 8; (at = strstr(at, "\":{\"dtype\":\""));) {
        char dtype[8] = "", shape[64] = "";
        unsigned long begin, end;
        const char *name = at;
        while (name[-1] != '"')
            name--;
        if (sscanf(at,
                   "\":{\"dtype\":\"%7[A-Z0-9]\",\"shape\":%63[][0-9,]\"data_offsets\":[%lu,%lu]",
                   dtype, shape, &begin, &end) != 4)
            return 1;
        shape[strlen(shape) - 1] = 0; /* the comma after it */
        printf("%.*s %s %s", (int)(at - name), name, dtype, shape);
        for (const char *number = data + begin; number < data + end; number += size_of(dtype))
            print_number(dtype, number);
        puts("");
        at++;
    }
    return 0;
}
