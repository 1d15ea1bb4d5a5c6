/* What the tests of kernels share: operands, plain numbers to compare with, and how a kernel is
 * run.
 *
 * A program includes the kernels of one family and works out in double, by plain loops over dense
 * arrays, what they should give. It is compiled twice: with the block sizes of users, and with
 * -DGP_TINY=1, where small cases cross every one of them. Each case runs with 1 and with 3 threads,
 * which must agree to the bit, in workspace of exactly the planned size full of NaNs, on operands
 * whose gaps are NaNs, into outputs whose gaps must stay as they were.
 *
 * CROSS notes which sizes a case lies next to; run.sh wants all that the program's headers have.
 * The last line has a hash of workspace sizes: the same for every instruction set, since a plan
 * does not know how the emitted file will be compiled. */
#ifndef CHECK_H
#define CHECK_H

#include "runtime/c/narrow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define UNUSED __attribute__((unused)) /* not every program needs all */

/* Whether there are cases of the sizes of networks, and as large as results that are streamed. */
#ifndef LAYERS
#define LAYERS (!GP_TINY)
#endif

/* Dense numbers in the order of the dims. `at` is NULL where an operand is not given or an output
 * not asked for. */
typedef struct {
    int rank;
    int64_t dim[GP_MAX_RANK], count;
    double *at;
} Array;

/* How a tensor lies: dense, with gaps after rows and planes, with the last two axes exchanged, as
 * one that is broadcast along its first axis, or with gaps along that alone. */
typedef enum { DENSE, GAPS, SWAPPED, SHARED, APART } Layout;

enum { MOST_INS = 8, MOST_OUTS = 3 };

typedef struct {
    int (*kernel)(const gp_call *);
    size_t (*space)(const gp_call *); /* NULL: needs none */
    const void *attr;
    int ins, outs;
    Array in[MOST_INS], want[MOST_OUTS];
    Layout in_as[MOST_INS], out_as[MOST_OUTS];
    int32_t in_type[MOST_INS], out_type[MOST_OUTS]; /* GP_F32 is 0 */
    int follows;                                    /* whether the kernel runs what follows it */
    int aside; /* and can keep what it makes aside until that has run, over what it reads */
    int over[MOST_OUTS]; /* 1 + the operand that each output may be written over; 0: none */
    int only_over;       /* and is, always */
    double slack;        /* allowed error in units of rounding of the largest wanted; 0: exact */
    double terms;        /* of which no less is taken than of this: the size of what cancels out */
    gp_run run;          /* threads are filled in */
    unsigned half_in, half_out; /* operands and outputs that may have 16 bits, all or none of them:
                                   a bit each */
} Case;

static uint64_t state = 12345, sizes = 1469598103934665603u;
static int failures, cases, hashing;
static void *kept[4096]; /* what the case at hand has allocated */
static int keeps;

static int64_t draw(int64_t low, int64_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* From here on cases do not hang on the instruction set, and their workspace must not either. */
static UNUSED void same_everywhere(void)
{
    state = 54321;
    hashing = 1;
}

static UNUSED int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void *keep(size_t bytes)
{
    void *at = malloc(bytes ? bytes : 1);
    if (!at || keeps == sizeof kept / sizeof *kept)
        exit(2);
    return kept[keeps++] = at;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static Array zeros(int rank, const int64_t *dim)
{
    Array a = {.rank = rank, .count = 1};
    for (int i = 0; i < rank; i++)
        a.count *= a.dim[i] = dim[i];
    a.at = keep((size_t)a.count * sizeof *a.at);
    memset(a.at, 0, (size_t)a.count * sizeof *a.at);
    return a;
}

#define DIMS(...)                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

/* Small whole numbers: sums of their products are exact in any order. */
static UNUSED Array integers(int rank, const int64_t *dim, int64_t low, int64_t high)
{
    Array a = zeros(rank, dim);
    for (int64_t i = 0; i < a.count; i++)
        a.at[i] = (double)draw(low, high);
    return a;
}

/* Numbers from -1 to 1 that a float holds exactly. */
static UNUSED Array reals(int rank, const int64_t *dim)
{
    Array a = zeros(rank, dim);
    for (int64_t i = 0; i < a.count; i++)
        a.at[i] = (double)draw(-4096, 4096) / 4096;
    return a;
}

/* What a float (or whatever the real type is) holds of them. */
static UNUSED Array rounded(Array a)
{
    for (int64_t i = 0; i < a.count; i++)
        a.at[i] = (double)(gp_real)a.at[i];
    return a;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static const unsigned char GAP = 0xff; /* a NaN, byte by byte */

typedef struct {
    gp_tensor t;
    size_t bytes; /* of all, gaps included */
} Laid;

static Laid lay(const Array *a, Layout how, int32_t type)
{
    Laid l = {.t = {.rank = a->rank, .dtype = type}};
    int order[GP_MAX_RANK];
    int64_t size = how == GAPS ? 2 : 1, last = 0;
    for (int i = 0; i < a->rank; i++)
        order[i] = a->rank - 1 - i;
    if (how == SWAPPED && a->rank > 1) {
        order[0] = a->rank - 2;
        order[1] = a->rank - 1;
    }
    if (how == GAPS && a->count % 2)
        size = 1; /* elements side by side, rows not */
    for (int i = 0; i < a->rank; i++) {
        const int d = order[i];
        size += how == APART && d == 0 ? 5 : 0;
        l.t.dim[d] = a->dim[d];
        l.t.stride[d] = how == SHARED && d == 0 ? 0 : size;
        last += (a->dim[d] - 1) * l.t.stride[d];
        size *= a->dim[d] + (how == GAPS ? 1 + d % 2 : 0);
    }
    l.bytes = (size_t)(last + 1) * gp_size(type);
    if (!a->at)
        return l;
    l.t.data = keep(l.bytes);
    memset(l.t.data, GAP, l.bytes);
    return l;
}

/* Where element i lies. */
static int64_t place(const gp_tensor *t, int64_t i)
{
    int64_t at = 0, size = 1;
    int d = t->rank;
    while (d-- > 0 && t->stride[d] == size)
        size *= t->dim[d];
    if (d < 0)
        return i; /* dense */
    for (d = t->rank; d-- > 0; i /= t->dim[d])
        at += i % t->dim[d] * t->stride[d];
    return at;
}

static double load(const gp_tensor *t, int64_t i)
{
    const int64_t at = place(t, i);
    if (t->dtype == GP_I32)
        return ((const int32_t *)t->data)[at];
    if (t->dtype == GP_I64)
        return (double)((const int64_t *)t->data)[at];
    return gp_is_real(t->dtype) ? (double)gp_get_real(t->data, at, t->dtype)
                                : ((const uint8_t *)t->data)[at];
}

static void store(const gp_tensor *t, int64_t i, double x)
{
    const int64_t at = place(t, i);
    if (t->dtype == GP_I32)
        ((int32_t *)t->data)[at] = (int32_t)x;
    else if (t->dtype == GP_I64)
        ((int64_t *)t->data)[at] = (int64_t)x;
    else if (gp_is_real(t->dtype))
        gp_set_real(t->data, at, t->dtype, (gp_real)x);
    else
        ((uint8_t *)t->data)[at] = (uint8_t)x;
}

/* Whether what lies between the elements is as it was. Overwrites them. */
static int gaps_are_left(const Laid *l, int64_t count)
{
    const size_t size = gp_size(l->t.dtype);
    for (int64_t i = 0; i < count; i++)
        memset((unsigned char *)l->t.data + (size_t)place(&l->t, i) * size, GAP, size);
    for (size_t i = 0; i < l->bytes; i++)
        if (((unsigned char *)l->t.data)[i] != GAP)
            return 0;
    return 1;
}

/* ---- Sizes that cases lie next to -------------------------------------------------------------
 */

enum { BELOW = 1, AT = 2, ABOVE = 4, JUST_BELOW = 8, JUST_ABOVE = 16 };
static struct {
    const char *name;
    int met, wanted;
} crossed[64];

static UNUSED void cross(const char *name, int64_t size, int64_t quantity, int wanted)
{
    int i = 0;
    while (crossed[i].name && strcmp(crossed[i].name, name) != 0)
        i++;
    if (i + 1 == sizeof crossed / sizeof *crossed)
        exit(2);
    crossed[i].name = name;
    crossed[i].wanted = wanted;
    crossed[i].met |= quantity < size ? BELOW : quantity > size ? ABOVE : AT;
    crossed[i].met |= quantity == size - 1 ? JUST_BELOW : quantity == size + 1 ? JUST_ABOVE : 0;
}

/* A size of this case, beside the one that it is cut or chosen by; or a total, which cannot be just
 * any number. */
#define CROSS(name, quantity) cross(#name, (name), (quantity), JUST_BELOW | AT | JUST_ABOVE)
#define CROSS_TOTAL(name, quantity) cross(#name, (name), (quantity), BELOW | AT | ABOVE)

/* A size of the headers that no kernel of this program hangs on. */
#define NOT_HERE(name) printf("elsewhere %s\n", #name), (void)(name)

/* ---- Running --------------------------------------------------------------------------------- */

/* What follows in half of the cases; counts how often each element is met. */
static void follow(const void *args, gp_real *at, int64_t first, int64_t n)
{
    unsigned char *met = *(unsigned char *const *)args;
    for (int64_t i = 0; i < n; i++) {
        at[i] = 2 * at[i] + (gp_real)((first + i) % 7);
        met[first + i]++;
    }
}

static void wrong(const char *what, const char *format, ...)
{
    va_list list;
    if (failures++ > 20)
        return;
    printf("wrong: %s: ", what);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

static double largest(const Array *a)
{
    double x = 0;
    for (int64_t i = 0; i < a->count; i++)
        x = isfinite(a->at[i]) && fabs(a->at[i]) > x ? fabs(a->at[i]) : x;
    return x;
}

/* What a dtype holds of a number that is not too large for it, in doubles alone. */
static UNUSED double held(double x, int dtype)
{
    int exponent;
    if ((dtype != GP_F16 && dtype != GP_BF16) || x == 0 || !isfinite(x))
        return x;
    if (dtype == GP_F16 && fabs(x) < 0x1p-14)
        return nearbyint(x * 0x1p24) / 0x1p24; /* subnormal */
    const double fraction = frexp(x, &exponent), digits = dtype == GP_BF16 ? 256 : 2048;
    return ldexp(nearbyint(fraction * digits) / digits, exponent);
}

static int agrees(double got, double want, double allowed)
{
    if (want != want || isinf(want))
        return want != want ? got != got : got == want;
    return fabs(got - want) <= allowed;
}

/* One run: the outputs as they are afterwards, in the order of their dims. */
static void run_once(const char *what, const Case *k, int threads, int follows, int over,
                     double *const *got)
{
    Laid in[MOST_INS], out[MOST_OUTS];
    gp_tensor ins[MOST_INS], outs[MOST_OUTS];
    unsigned char *met = keep((size_t)k->want[0].count);
    gp_run run = k->run;
    run.threads = threads;
    for (int i = 0; i < k->ins; i++) {
        in[i] = lay(&k->in[i], k->in_as[i], k->in_type[i]);
        for (int64_t e = 0; k->in[i].at && e < k->in[i].count; e++)
            store(&in[i].t, e, k->in[i].at[e]);
        ins[i] = in[i].t;
    }
    for (int i = 0; i < k->outs; i++) {
        out[i] = lay(&k->want[i], k->out_as[i], k->out_type[i]);
        outs[i] = over && k->over[i] > 0 ? ins[k->over[i] - 1] : out[i].t;
    }
    memset(met, 0, (size_t)k->want[0].count);
    gp_call c = {.in = ins,
                 .ins = k->ins,
                 .out = outs,
                 .outs = k->outs,
                 .attr = k->attr,
                 .run = &run,
                 .epilogue = follows ? follow : NULL,
                 .epilogue_args = &met};
    const size_t bytes = k->space ? k->space(&c) : 0;
    sizes = hashing ? (sizes ^ bytes) * 1099511628211u : sizes;
    unsigned char *work = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!work)
        exit(2);
    memset(work, GAP, (bytes + 127) / 64 * 64);
    c.work = work;
    const int code = k->kernel(&c);
    if (code != GP_OK)
        wrong(what, "returned %d", code);
    for (int i = 0; i < 64; i++)
        if (work[bytes + (size_t)i] != GAP) {
            wrong(what, "wrote beyond its workspace");
            break;
        }
    free(work);
    for (int i = 0; i < k->outs; i++)
        for (int64_t e = 0; k->want[i].at && e < k->want[i].count; e++)
            got[i][e] = load(&outs[i], e);
    for (int64_t e = 0; e < k->want[0].count && k->follows; e++)
        if (met[e] != follows) {
            wrong(what, "element %d was met %d times by what follows", (int)e, met[e]);
            break;
        }
    for (int i = 0; i < k->outs; i++)
        if (k->want[i].at && outs[i].data == out[i].t.data &&
            !gaps_are_left(&out[i], k->want[i].count))
            wrong(what, "wrote between the elements of output %d", i);
}

static void compare(const char *what, const Case *k, int follows, double *const *got)
{
    const double unit = sizeof(gp_real) == 4 ? 0x1p-24 : 0x1p-53;
    for (int i = 0; i < k->outs; i++) {
        const double whole = k->want[i].at ? largest(&k->want[i]) : 0;
        const double scale = whole > k->terms ? whole : k->terms;
        for (int64_t e = 0; k->want[i].at && e < k->want[i].count; e++) {
            const int after = follows && i == 0;
            const double sum = after ? 2 * k->want[i].at[e] + (double)(e % 7) : k->want[i].at[e];
            const double want = held(sum, k->out_type[i]);
            if (agrees(got[i][e], want, k->slack * unit * (1 + after) * (scale + 8 * after)))
                continue;
            wrong(what, "output %d, element %d is %.9g, not %.9g", i, (int)e, got[i][e], want);
            break;
        }
    }
}

/* Adds what lies where the result will. */
static void add_old(const void *args, gp_real *at, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        at[i] = (gp_real)load(*(const gp_tensor *const *)args, first + i) + at[i];
}

/* Runs the kernel over numbers of output 0 that what follows adds: bit for bit as if the result had
 * been added to them afterwards. */
static void run_aside(const char *what, const Case *k, int threads, const double *result)
{
    Laid in[MOST_INS], out = lay(&k->want[0], k->out_as[0], k->out_type[0]);
    gp_tensor ins[MOST_INS];
    const gp_tensor *over = &out.t;
    gp_run run = k->run;
    run.threads = threads;
    for (int i = 0; i < k->ins; i++) {
        in[i] = lay(&k->in[i], k->in_as[i], k->in_type[i]);
        for (int64_t e = 0; k->in[i].at && e < k->in[i].count; e++)
            store(&in[i].t, e, k->in[i].at[e]);
        ins[i] = in[i].t;
    }
    gp_call c = {.in = ins,
                 .ins = k->ins,
                 .out = &out.t,
                 .outs = 1,
                 .attr = k->attr,
                 .run = &run,
                 .epilogue = add_old,
                 .epilogue_args = &over,
                 .aside = 1};
    for (int64_t e = 0; e < k->want[0].count; e++)
        store(&out.t, e, (double)(e % 11) / 7);
    const size_t bytes = k->space ? k->space(&c) : 0;
    sizes = hashing ? (sizes ^ bytes) * 1099511628211u : sizes;
    unsigned char *work = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!work)
        exit(2);
    memset(work, GAP, (bytes + 127) / 64 * 64);
    c.work = work;
    if (k->kernel(&c) != GP_OK)
        wrong(what, "fails");
    for (int i = 0; i < 64; i++)
        if (work[bytes + (size_t)i] != GAP) {
            wrong(what, "wrote beyond its workspace");
            break;
        }
    free(work);
    for (int64_t e = 0; e < k->want[0].count; e++) {
        const gp_real want = (gp_real)((double)(e % 11) / 7) + (gp_real)result[e];
        const gp_real got = (gp_real)load(&out.t, e);
        if (memcmp(&want, &got, sizeof want) != 0) {
            wrong(what, "element %d added where it lies is %.9g, not %.9g, with %d threads", (int)e,
                  (double)got, (double)want, threads);
            break;
        }
    }
    if (!gaps_are_left(&out, k->want[0].count))
        wrong(what, "wrote between the elements of what it was added to");
}

static void run_all(const char *what, const Case *k, int follows, int over)
{
    double *got[2][MOST_OUTS] = {{0}};
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < k->outs; i++)
            if (k->want[i].at)
                got[t][i] = keep((size_t)k->want[i].count * sizeof(double));
        run_once(what, k, t == 0 ? 1 : 3, follows, over, got[t]);
    }
    compare(what, k, follows, got[0]);
    for (int t = 0; t < 2 && k->aside && !follows && !over; t++)
        run_aside(what, k, t == 0 ? 1 : 3, got[0][0]);
    for (int i = 0; i < k->outs; i++)
        if (got[0][i] &&
            memcmp(got[0][i], got[1][i], (size_t)k->want[i].count * sizeof(double)) != 0)
            wrong(what, "output %d has other bits with 3 threads", i);
}

/* With 16 bits: what the kernel makes of the same numbers in f32, rounded, to the bit. */
static void run_halves(const char *what, const Case *k, int32_t half, int follows, int over)
{
    Case wide = *k, narrow = *k;
    double *got[3][MOST_OUTS] = {{0}};
    for (int i = 0; i < k->ins; i++)
        if (k->half_in >> i & 1 && k->in[i].at) {
            wide.in[i] = zeros(k->in[i].rank, k->in[i].dim);
            for (int64_t e = 0; e < k->in[i].count; e++)
                wide.in[i].at[e] = held(k->in[i].at[e], half);
            narrow.in[i] = wide.in[i];
            narrow.in_type[i] = half;
        }
    for (int i = 0; i < k->outs; i++)
        if (k->half_out >> i & 1)
            narrow.out_type[i] = half;
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < k->outs; i++)
            if (k->want[i].at)
                got[t][i] = keep((size_t)k->want[i].count * sizeof(double));
        run_once(what, t ? &narrow : &wide, t == 2 ? 3 : 1, follows, over, got[t]);
    }
    for (int t = 1; t < 3; t++)
        for (int i = 0; i < k->outs; i++)
            for (int64_t e = 0; got[t][i] && e < k->want[i].count; e++) {
                const double want = held(got[0][i][e], narrow.out_type[i]);
                if (agrees(got[t][i][e], want, 0))
                    continue;
                wrong(what, "output %d, element %d of dtype %d is %.9g, not %.9g", i, (int)e, half,
                      got[t][i][e], want);
                break;
            }
}

/* Runs a case in all ways. With the block sizes of users every second case has something that
 * follows, with tiny ones all have it, and all have not. */
static UNUSED void try_more(const Case *k, const char *format, ...)
{
    char what[300];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    cases++;
    for (int follows = 0; follows <= k->follows; follows++)
        if (!k->only_over && (GP_TINY || !k->follows || follows == cases % 2))
            run_all(what, k, follows, 0);
    if (k->over[0] > 0)
        run_all(what, k, 0, 1);
    for (int32_t half = GP_F16; half <= GP_BF16 && (k->half_in || k->half_out); half++)
        for (int over = 0; over <= (k->over[0] > 0); over++)
            run_halves(what, k, half, k->follows && half == GP_BF16, over);
}

/* Frees what was allocated for the cases until now. */
static void forget(void)
{
    while (keeps > 0)
        free(kept[--keeps]);
}

/* The last case of its operands. */
#define try(...) (try_more(__VA_ARGS__), forget())

static int finish(void)
{
    for (int i = 0; crossed[i].name; i++)
        if ((crossed[i].met & crossed[i].wanted) == crossed[i].wanted)
            printf("crossed %s\n", crossed[i].name);
    printf("%d cases\nworkspace %016llx\n", cases, (unsigned long long)sizes);
    return failures > 0;
}

#endif
