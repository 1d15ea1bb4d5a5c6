/* Casts to integers, next to both ends of each range. */
#include "runtime/c/scalar.h"
#include "tests/kernels/check.h"

static void same(const char *type, gp_real x, int64_t is, int64_t want)
{
    cases++;
    if (is != want) {
        printf("%.9g as %s is %lld, not %lld\n", (double)x, type, (long long)is, (long long)want);
        failures++;
    }
}

int main(void)
{
    const gp_real i32 = 2147483648.0f, i64 = 9223372036854775808.0f;
    const struct {
        gp_real x;
        int64_t i32, i64, u8;
    } row[] = {
        {0, 0, 0, 0},
        {-0.9f, 0, 0, 0},
        {1.9f, 1, 1, 1},
        {-1.9f, -1, -1, 0},
        {254.9f, 254, 254, 254},
        {255, 255, 255, 255},
        {255.9f, 255, 255, 255},
        {256, 256, 256, 255},
        {nextafterf(i32, 0), INT32_MAX - 127, INT32_MAX - 127, 255},
        {i32, INT32_MAX, INT64_C(1) << 31, 255},
        {-i32, INT32_MIN, INT32_MIN, 0},
        {nextafterf(-i32, -INFINITY), INT32_MIN, INT64_C(-2147483904), 0},
        {nextafterf(i64, 0), INT32_MAX, INT64_MAX - 549755813887, 255},
        {i64, INT32_MAX, INT64_MAX, 255},
        {-i64, INT32_MIN, INT64_MIN, 0},
        {nextafterf(-i64, -INFINITY), INT32_MIN, INT64_MIN, 0},
        {INFINITY, INT32_MAX, INT64_MAX, 255},
        {-INFINITY, INT32_MIN, INT64_MIN, 0},
        {NAN, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        same("i32", row[i].x, gp_to_i32(row[i].x), row[i].i32);
        same("i64", row[i].x, gp_to_i64(row[i].x), row[i].i64);
        same("u8", row[i].x, gp_to_u8(row[i].x), row[i].u8);
    }
    forget();
    return finish();
}
