/* Whether two files hold the same numbers but for rounding: near ONE OTHER. */
#include <math.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    FILE *one = argc == 3 ? fopen(argv[1], "r") : NULL;
    FILE *other = argc == 3 ? fopen(argv[2], "r") : NULL;
    double a, b, worst = 0;
    int numbers = 0, more;
    if (!one || !other)
        return 2;
    while ((more = fscanf(one, "%lf", &a)) == 1 && fscanf(other, "%lf", &b) == 1) {
        worst = fmax(worst, fabs(a - b) / fmax(fabs(a), 1e-3));
        numbers++;
    }
    printf("%d numbers, %.1e apart\n", numbers, worst);
    return numbers < 20 || more == 1 || fscanf(other, "%lf", &b) == 1 || !(worst <= 3e-6);
}
