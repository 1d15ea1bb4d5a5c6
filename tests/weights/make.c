/* Makes a safetensors file. usage: make FILE <LINES: one for each tensor, NAME DTYPE [3,4]
 * NUMBER... make FILE HEADER BYTES: a header as it is, and zeros after it */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 16, FILE_BYTES = 1 << 20 };

static char header[FILE_BYTES], data[FILE_BYTES];
static size_t length, bytes;

static void put(const void *from, size_t size)
{
    memcpy(data + bytes, from, size);
    bytes += size;
}

/* Of numbers that have one: no rounding is done here. */
static uint16_t half(double number, int digits, int bias)
{
    int exponent;
    double fraction = frexp(fabs(number), &exponent); /* from 0.5 to below 1 */
    int field = exponent - 1 + bias;
    if (number == 0)
        return 0;
    unsigned bits =
        field > 0 ? (unsigned)field << digits | (unsigned)lround((fraction * 2 - 1) * (1 << digits))
                  : (unsigned)lround(ldexp(fabs(number), digits - 1 + bias));
    return (uint16_t)(bits | (number < 0 ? 0x8000u : 0));
}

static void put_number(const char *dtype, const char *text)
{
    double real = strtod(text, NULL);
    float single = (float)real;
    int64_t whole = strtoll(text, NULL, 10);
    uint16_t f16 = half(real, 10, 15), bf16 = half(real, 7, 127);
    if (strcmp(dtype, "F32") == 0)
        put(&single, 4);
    else if (strcmp(dtype, "F64") == 0)
        put(&real, 8);
    else if (strcmp(dtype, "F16") == 0)
        put(&f16, 2);
    else if (strcmp(dtype, "BF16") == 0)
        put(&bf16, 2);
    else
        put(&whole, strcmp(dtype, "I64") == 0 ? 8 : strcmp(dtype, "I32") == 0 ? 4 : 1);
}

static void add_line(char *line)
{
    const char *name = strtok(line, " \n"), *dtype = strtok(NULL, " \n");
    const char *shape = strtok(NULL, " \n");
    size_t begin = bytes;
    for (char *number; (number = strtok(NULL, " \n"));)
        put_number(dtype, number);
    length += (size_t)sprintf(header + length,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                              length > 1 ? "," : "", name, dtype, shape, begin, bytes);
}

int main(int count, char **argument)
{
    static char line[LINE];
    if (count == 4) {
        FILE *from = fopen(argument[2], "rb");
        length = from ? fread(header, 1, sizeof header, from) : 0;
        bytes = (size_t)atoi(argument[3]);
    } else {
        length = (size_t)sprintf(header, "{");
        while (fgets(line, sizeof line, stdin))
            add_line(line);
        header[length++] = '}';
    }
    FILE *to = fopen(argument[1], "wb");
    uint64_t size = length;
    return !to || fwrite(&size, 8, 1, to) != 1 || fwrite(header, 1, length, to) != length ||
           fwrite(data, 1, bytes, to) != bytes || fclose(to);
}
