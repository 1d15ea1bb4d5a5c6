/* Compares two files that drive wrote: near TOLERANCE A B [PART]. Numbers of one name make a
 * tensor; where two differ by more than the tolerance times the largest of it, they are not near.
 * Names with PART in them are left out. Prints the worst. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

typedef std::vector<std::pair<std::string, std::vector<double>>> Dump;

static Dump read_dump(const char *path, const char *without)
{
    Dump dump;
    FILE *file = fopen(path, "r");
    char name[512];
    double number;
    while (file && fscanf(file, "%511s %lf", name, &number) == 2) {
        if (without && strstr(name, without))
            continue;
        if (dump.empty() || dump.back().first != name)
            dump.push_back({name, {}});
        dump.back().second.push_back(number);
    }
    if (file)
        fclose(file);
    return dump;
}

int main(int argc, char **argv)
{
    const double tolerance = argc == 4 || argc == 5 ? atof(argv[1]) : -1;
    if (tolerance < 0)
        return 2;
    const char *without = argc == 5 ? argv[4] : NULL;
    const Dump a = read_dump(argv[2], without), b = read_dump(argv[3], without);
    if (a.empty() || a.size() != b.size()) {
        printf("%zu and %zu tensors\n", a.size(), b.size());
        return 1;
    }
    double worst = 0;
    size_t where = 0, equal = 0;
    for (size_t i = 0; i < a.size(); i++) {
        double most = 0, apart = 0;
        if (a[i].first != b[i].first || a[i].second.size() != b[i].second.size())
            return 1;
        for (size_t k = 0; k < a[i].second.size(); k++) {
            const double x = a[i].second[k], y = b[i].second[k];
            if (!isfinite(x) || !isfinite(y)) {
                printf("%s has %g and %g\n", a[i].first.c_str(), x, y);
                return 1;
            }
            most = fmax(most, fmax(fabs(x), fabs(y)));
            apart = fmax(apart, fabs(x - y));
        }
        const double error = most > 0 ? apart / most : 0;
        equal += error == 0;
        if (error > worst) {
            worst = error;
            where = i;
        }
    }
    printf("%zu tensors, %zu bit for bit, worst %.2g (%s)\n", a.size(), equal, worst,
           a[where].first.c_str());
    return worst <= tolerance ? 0 : 1;
}
