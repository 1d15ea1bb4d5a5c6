/* Numbers of bytes, as people write and read them. */
#include "frontend/base/size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool size_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end, *whole_end;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    errno = 0;
    unsigned long long whole = strtoull(text, &whole_end, 10);
    bool exact = errno == 0;
    double number = strtod(text, &end);
    exact &= end == whole_end; /* a double has 53 bits */
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit) {
        end++;
        if (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0)
            end += strlen(end);
    }
    number = ldexp(number, (int)shift);
    if (*end || !(number >= 0) || number >= 0x1p62)
        return false;
    *bytes = exact ? (uint64_t)whole << shift : (uint64_t)number;
    return true;
}

char *size_text(Arena *arena, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    double number = (double)bytes;
    while (number >= 1024 && unit < 6) {
        number /= 1024;
        unit++;
    }
    if (unit == 0)
        return arena_printf(arena, "%llu bytes", (unsigned long long)bytes);
    return arena_printf(arena, number < 100 ? "%.2f %s" : "%.1f %s", number, units[unit]);
}

char *size_enough(Arena *arena, uint64_t bytes)
{
    int unit = 4;
    while (unit > 0 && bytes >> (10 * unit) == 0)
        unit--;
    if (unit == 0)
        return arena_printf(arena, "%llu", (unsigned long long)bytes);
    uint64_t one = (uint64_t)1 << (10 * unit);
    uint64_t hundredths = bytes / one * 100 + (bytes % one * 100 + one - 1) / one;
    for (;; hundredths++) {
        uint64_t read;
        char *text = arena_printf(arena, hundredths % 100 ? "%llu.%02llu%c" : "%llu%.0llu%c",
                                  (unsigned long long)(hundredths / 100),
                                  (unsigned long long)(hundredths % 100), "KMGT"[unit - 1]);
        if (!size_parse(text, &read) || read >= bytes)
            return text;
    }
}
