/* cast, from each dtype to each: numbers at the edges of their ranges, against what long double and
 * a search through all numbers of 16 bits say. The same once more for CUDA's kernels. */
#include "frontend/frontend.h"
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 512 };

typedef union {
    gp_real f32;
    double f64;
    int64_t i64;
    int32_t i32;
    uint32_t u32;
    uint16_t u16;
    int8_t i8;
    uint8_t u8;
} Element;

/* ---- Numbers of 16 bits ---------------------------------------------------------------------- */

static int digits_of(Dtype dtype)
{
    return dtype == F16 ? 10 : 7;
}

/* By the definition of the format: (-1)^s * 2^(e - bias) * (1 + f / 2^digits). */
static long double decode(Dtype dtype, uint16_t bits)
{
    const int digits = digits_of(dtype), bias = dtype == F16 ? 15 : 127;
    const int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
    const long double sign = bits >> 15 ? -1 : 1;
    if (exponent == 2 * bias + 1)
        return fraction ? NAN : sign * INFINITY;
    return sign * ldexpl(exponent ? (1 << digits) + fraction : fraction,
                         (exponent ? exponent : 1) - bias - digits);
}

/* The nearest of them; of two the one that is even. What rounds to one beyond the largest is
 * infinite, so infinity stands where that would. */
static uint16_t encode(Dtype dtype, long double x)
{
    const uint16_t infinity = (uint16_t)((dtype == F16 ? 31 : 255) << digits_of(dtype));
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint16_t best = 0;
    for (uint32_t bits = 1; bits <= infinity; bits++) {
        const long double beyond = dtype == F16 ? 65536.0L : ldexpl(1, 128);
        const long double size = fabsl(x) > beyond ? beyond : fabsl(x);
        const long double at = bits == infinity ? beyond : decode(dtype, (uint16_t)bits);
        const long double is = fabsl(at - size), was = fabsl(decode(dtype, best) - size);
        if (is < was || (is == was && bits % 2 == 0))
            best = (uint16_t)bits;
        else if (is > was)
            break;
    }
    return sign | best;
}

/* ---- What is right --------------------------------------------------------------------------- */

static long double load(Dtype dtype, const Element *e)
{
    switch (dtype) {
    case F32:
        return e->f32;
    case F64:
        return e->f64;
    case F16:
    case BF16:
        return decode(dtype, e->u16);
    case I64:
        return e->i64;
    case I32:
        return e->i32;
    case U32:
        return e->u32;
    case U16:
        return e->u16;
    case I8:
        return e->i8;
    default:
        return e->u8;
    }
}

/* Its lowest bits, as C's conversion to an unsigned type takes them. */
static Element wrapped(Dtype dtype, int64_t x)
{
    Element e = {.i64 = 0};
    const uint64_t bits = (uint64_t)x;
    const uint8_t byte = (uint8_t)bits;
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    if (dtype_size(dtype) == 1)
        memcpy(&e, &byte, 1);
    else if (dtype_size(dtype) == 2)
        memcpy(&e, &two, 2);
    else if (dtype_size(dtype) == 4)
        memcpy(&e, &four, 4);
    else
        memcpy(&e, &bits, 8);
    return e;
}

static Element right(Dtype from, Dtype to, const Element *e)
{
    const long double x = load(from, e);
    const long double high = to == I64 ? 9223372036854775807.0L : dtype_row(to)->high;
    if (from == to)
        return *e;
    if (to == F32)
        return (Element){.f32 = (gp_real)x};
    if (to == F64)
        return (Element){.f64 = (double)x};
    if (to == F16 || to == BF16)
        return (Element){.u16 = isnan(x) ? 0x7fff : encode(to, x)};
    if (to == BOOL)
        return (Element){.u8 = x != 0};
    if (!dtype_is_float(from))
        return wrapped(to, (int64_t)x);
    if (isnan(x))
        return wrapped(to, 0);
    return wrapped(to, x <= dtype_row(to)->low ? (int64_t)dtype_row(to)->low
                       : x >= high             ? (int64_t)high
                                               : (int64_t)x);
}

/* ---- Numbers to try -------------------------------------------------------------------------- */

static const long double edges[] = {0.0L,
                                    0.25L,
                                    0.5L,
                                    0.75L,
                                    1,
                                    1.5L,
                                    2.5L,
                                    3,
                                    127,
                                    127.5L,
                                    128,
                                    129,
                                    254.5L,
                                    255,
                                    255.5L,
                                    256,
                                    257,
                                    2047,
                                    2048,
                                    2049,
                                    2051,
                                    4097,
                                    32767,
                                    32768,
                                    65503,
                                    65504,
                                    65519,
                                    65519.99L,
                                    65520,
                                    65535,
                                    65535.5L,
                                    65536,
                                    16777215,
                                    16777216,
                                    16777217,
                                    16777219,
                                    2147483647,
                                    2147483647.5L,
                                    2147483648,
                                    4294967295,
                                    4294967295.5L,
                                    4294967296,
                                    0x1p53L,
                                    0x1p53L + 1,
                                    0x1p62L + 1,
                                    0x1.01p62L,
                                    0x1.01p62L + 1,
                                    0x1.03p62L - 1,
                                    0x1.03p62L,
                                    0x1p63L - 1,
                                    0x1p63L,
                                    0x1p64L,
                                    0x1.fep127L,
                                    0x1.ffp127L,
                                    0x1.fefffep127L,
                                    0x1p128L,
                                    1e300L,
                                    INFINITY,
                                    NAN,
                                    0x1p-14L,
                                    0x1.ffcp-15L,
                                    0x1.ffep-15L,
                                    0x1p-24L,
                                    0x1.8p-24L,
                                    0x1p-25L,
                                    0x1.000002p-25L,
                                    0x1p-26L,
                                    0x1p-126L,
                                    0x1.fcp-127L,
                                    0x1p-133L,
                                    0x1.8p-133L,
                                    0x1p-134L,
                                    0x1.000002p-134L,
                                    0x1p-149L,
                                    5e-324L,
                                    1.00048828125L,
                                    1.0004882L,
                                    1.00146484375L,
                                    1.00390625L,
                                    1.01171875L,
                                    3.3L,
                                    1e-3L};

/* Those of the edges, and of their opposites, that the dtype has; of 16 bits a part of all. */
static int fill(Dtype dtype, Element *to)
{
    int count = 0;
    for (size_t i = 0; i < 2 * sizeof edges / sizeof *edges; i++) {
        const long double x = i % 2 ? -edges[i / 2] : edges[i / 2];
        const bool whole = x == floorl(x) && x >= -0x1p63L && x < 0x1p63L;
        Element e = {.i64 = 0};
        if (dtype == F32)
            e.f32 = (gp_real)x;
        else if (dtype == F64)
            e.f64 = (double)x;
        else if (dtype == F16 || dtype == BF16)
            e.u16 = isnan(x) ? 0x7e00 | (dtype == BF16 ? 0x7fc0 : 0) : encode(dtype, x);
        else if (!whole || (long double)(int64_t)x < dtype_row(dtype)->low ||
                 (dtype != I64 && x > dtype_row(dtype)->high))
            continue;
        else
            e = wrapped(dtype, (int64_t)x);
        to[count++] = e;
    }
    for (uint32_t bits = 1; dtype_size(dtype) == 2 && bits < 0x10000; bits += 331)
        to[count++].u16 = (uint16_t)bits;
    cr_assert(count > 1 && count <= NUMBERS);
    return count;
}

static bool same(Dtype dtype, const Element *a, const Element *b)
{
    if (dtype_is_float(dtype) && isnan(load(dtype, a)))
        return isnan(load(dtype, b));
    return memcmp(a, b, dtype == F32 ? sizeof(gp_real) : dtype_size(dtype)) == 0;
}

/* ---- The test -------------------------------------------------------------------------------- */

static void try(Dtype from, Dtype to)
{
    static Element in[NUMBERS];
    static unsigned char packed[NUMBERS * 8 * 2], out[NUMBERS * 8 * 2];
    const size_t size = gp_size(from), made = gp_size(to);
    const int count = fill(from, in);
    memset(out, 0x55, sizeof out);
    for (int i = 0; i < count; i++) /* every other one, backwards */
        memcpy(packed + (size_t)(2 * (count - 1 - i)) * size, &in[i], size);
    const gp_tensor x = {
        packed + (size_t)(2 * (count - 1)) * size, (int32_t)from, 1, {count}, {-2}};
    const gp_tensor y = {out, (int32_t)to, 1, {count}, {1}};
    const gp_run run = {.threads = 1};
    gp_call call = {.in = &x, .out = &y, .ins = 1, .outs = 1, .run = &run};
    const gp_setting setting[MAX_ARGS] = {[1] = {.number = to}};
    cr_assert_eq(runtime_kernel("cast")->run(&call, setting), GP_OK);
    for (int i = 0; i < count; i++) {
        Element got = {.i64 = 0}, want = right(from, to, &in[i]);
        memcpy(&got, out + (size_t)i * made, made);
        cr_expect(same(to, &want, &got), "%s to %s: %.21Lg becomes %.21Lg, not %.21Lg",
                  dtype_name(from), dtype_name(to), load(from, &in[i]), load(to, &got),
                  load(to, &want));
    }
    cr_expect_eq(out[(size_t)count * made], 0x55, "after the last");
}

Test(cast, converts_the_edges_of_each_dtype_to_each)
{
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++)
            try((Dtype)from, (Dtype)to);
}

Test(cast, reads_every_number_of_16_bits)
{
    for (int k = 0; k < 2; k++) {
        const Dtype dtype = k ? BF16 : F16;
        static uint16_t in[1 << 16];
        static gp_real out[1 << 16];
        for (int i = 0; i < 1 << 16; i++)
            in[i] = (uint16_t)i;
        const gp_tensor x = {in, (int32_t)dtype, 1, {1 << 16}, {1}};
        const gp_tensor y = {out, GP_F32, 1, {1 << 16}, {1}};
        const gp_run run = {.threads = 1};
        gp_call call = {.in = &x, .out = &y, .ins = 1, .outs = 1, .run = &run};
        const gp_setting setting[MAX_ARGS] = {[1] = {.number = F32}};
        cr_assert_eq(runtime_kernel("cast")->run(&call, setting), GP_OK);
        for (int i = 0; i < 1 << 16; i++) {
            const long double want = decode(dtype, (uint16_t)i);
            cr_assert(
                isnan(want) ? isnan(out[i]) : out[i] == want && !signbit(out[i]) == !signbit(want),
                "%s %#x is %.9g, not %.9Lg", dtype_name(dtype), (unsigned)i, (double)out[i], want);
        }
    }
}

Test(dtypes, have_the_same_size_in_the_runtime)
{
    for (int i = 0; i < DTYPES; i++)
        cr_expect_eq(gp_size(i), i == F32 ? sizeof(gp_real) : dtype_size((Dtype)i), "%s",
                     dtype_name((Dtype)i));
}
