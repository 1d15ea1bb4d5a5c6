/* Matrix products of our own, in tiles of shared memory: those that cuBLAS has no form for.
 *
 * Columns and the depth are indexed by numbers of three digits, each of which moves an operand by a
 * stride of its own, and the last two of which also move a window over an image: outside of it, the
 * right operand is 0. So one kernel serves matrices of any strides and, as implicit GEMM,
 * convolutions (columns: image, row, column; depth: channel and tap of the window), and their
 * gradients with respect to the weights (the other way round).
 *
 * Where there are few tiles the depth is split into parts, one block each (split-K). Sums run up
 * the depth of a part, then over the parts, whatever the strides are. */
#ifndef GP_TILES_CUH
#define GP_TILES_CUH

#include "base.cuh"

enum { GP_TILE_DEPTH = 16, GP_TILE_THREADS = 128 };
/* Each thread: 8 rows of the tile, and 4 columns that are 16 apart. */
enum { GP_TILE_ROWS = 8, GP_TILE_COLUMNS = 4, GP_TILE_ACROSS = GP_TILE / GP_TILE_COLUMNS };

/* Blocks per multiprocessor of the kernel for f32, and of that for 16 bits; 0: as the compiler
 * likes. Left alone it limits some of them to 128 registers a thread, and spills. Three blocks
 * leave 168. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1200
#define GP_TILE_BLOCKS(half) 3
#else
#define GP_TILE_BLOCKS(half) ((half) ? 3 : 0)
#endif

#ifndef GP_NARROW /* digits up to this are counted in 32 bits */
#define GP_NARROW 0x3fffffff
#endif

/* How an operand moves with a number of three digits, and with an increment of `by`. */
typedef struct {
    int64_t stride[3];
    int64_t digit[3];                      /* digits of `by` */
    int64_t jump, carry_middle, carry_low; /* offsets: always, and when a digit carries */
} gp_walk;

typedef struct {
    gp_reals left, right, bias, to;
    int32_t half; /* what is multiplied, where that has 16 bits; else GP_F32 */
    int64_t rows, columns, depth, batches;
    int64_t depth_radix[2], column_radix[2]; /* of the middle digit and the low one */
    int64_t left_row, left_batch;
    gp_walk left_depth, right_depth;
    int64_t right_column[3], right_batch;
    int64_t to_row, to_column[3], to_batch;
    int64_t first[2], depth_step[2], column_step[2], size[2]; /* of the window and its image */
    int64_t parts, part;                                      /* of the depth: how many, how deep */
    int64_t to_part;
    int add; /* accumulate */
} gp_tiles;

typedef struct {
    int64_t digit[3];
} gp_digits;

GP_FUNCTION gp_digits gp_digits_of(int64_t number, const int64_t *radix)
{
    const gp_digits d = {
        {number / radix[1] / radix[0], number / radix[1] % radix[0], number % radix[1]}};
    return d;
}

GP_FUNCTION int64_t gp_digits_at(gp_digits d, const int64_t *stride)
{
    return d.digit[0] * stride[0] + d.digit[1] * stride[1] + d.digit[2] * stride[2];
}

GP_FUNCTION gp_walk gp_walk_of(int64_t high, int64_t middle, int64_t low, const int64_t *radix,
                               int64_t by)
{
    gp_walk w = {{high, middle, low}, {0, 0, 0}, 0, 0, 0};
    const gp_digits d = gp_digits_of(by, radix);
    for (int i = 0; i < 3; i++)
        w.digit[i] = d.digit[i];
    w.jump = gp_digits_at(d, w.stride);
    w.carry_middle = high - radix[0] * middle;
    w.carry_low = middle - radix[1] * low;
    return w;
}

/* The position of a thread in the depth of an operand. */
template <class Int> struct gp_walker {
    int64_t at;
    Int middle, low;

    __device__ void begin(const gp_walk &w, const int64_t *radix, int64_t k)
    {
        const gp_digits d = gp_digits_of(k, radix);
        at = gp_digits_at(d, w.stride);
        middle = (Int)d.digit[1];
        low = (Int)d.digit[2];
    }
    __device__ void go_on(const gp_walk &w, const int64_t *radix)
    {
        at += w.jump;
        low += (Int)w.digit[2];
        middle += (Int)w.digit[1];
        if (low >= (Int)radix[1]) {
            low -= (Int)radix[1];
            middle += 1;
            at += w.carry_low;
        }
        if (middle >= (Int)radix[0]) {
            middle -= (Int)radix[0];
            at += w.carry_middle;
        }
    }
};

/* f32 has a kernel of its own, without a branch in each load. */
template <bool HALF> GP_DEVICE gp_real gp_tile_get(const gp_reals &x, int64_t i, int32_t half)
{
    return HALF ? gp_factor(x, i, half) : ((const gp_real *)x.at)[i];
}

/* An operand from its element `first` on. Of f32 a pointer alone, which leaves the sums in
 * registers. */
template <bool HALF> struct gp_tile_operand {
    int64_t first;
    __device__ void begin(const gp_reals &, int64_t from)
    {
        first = from;
    }
    __device__ gp_real get(const gp_reals &x, int64_t i, int32_t half) const
    {
        return gp_factor(x, first + i, half);
    }
    __device__ void put(const gp_reals &x, int64_t i, gp_real value) const
    {
        x.put(first + i, value);
    }
};
template <> struct gp_tile_operand<false> {
    gp_real *at;
    __device__ void begin(const gp_reals &x, int64_t from)
    {
        at = (gp_real *)x.at + from;
    }
    __device__ gp_real get(const gp_reals &, int64_t i, int32_t) const
    {
        return at[i];
    }
    __device__ void put(const gp_reals &, int64_t i, gp_real value) const
    {
        at[i] = value;
    }
};

/* What one thread loads of both operands in each step: of the left one 8 rows at one depth, of the
 * right one a column at every second depth. */
template <class Int, bool HALF> struct gp_tile_reader {
    gp_tile_operand<HALF> left, right;
    int64_t left_k, right_k, end, rows;
    Int h, w;
    gp_walker<Int> left_at, right_at;
    int sees; /* the column exists */

    __device__ void begin(const gp_tiles &p, int64_t row, int64_t column, int64_t batch,
                          int64_t from, int64_t to)
    {
        const int64_t own = column + threadIdx.x % GP_TILE;
        const int64_t own_row = row + threadIdx.x / GP_TILE_DEPTH;
        const gp_digits d = gp_digits_of(own < p.columns ? own : 0, p.column_radix);
        left_k = from + threadIdx.x % GP_TILE_DEPTH;
        right_k = from + threadIdx.x / GP_TILE;
        end = to;
        rows = p.rows - own_row;
        left.begin(p.left, batch * p.left_batch + own_row * p.left_row);
        right.begin(p.right, batch * p.right_batch + gp_digits_at(d, p.right_column));
        h = (Int)(p.first[0] + d.digit[1] * p.column_step[0]);
        w = (Int)(p.first[1] + d.digit[2] * p.column_step[1]);
        sees = own < p.columns;
        left_at.begin(p.left_depth, p.depth_radix, left_k);
        right_at.begin(p.right_depth, p.depth_radix, right_k);
    }
    __device__ void read(const gp_tiles &p, gp_real *from_left, gp_real *from_right)
    {
        const int down = GP_TILE_THREADS / GP_TILE_DEPTH;
        GP_UNROLL
        for (int i = 0; i < GP_TILE_ROWS; i++)
            from_left[i] = left_k < end && i * down < rows
                               ? left.get(p.left, left_at.at + i * down * p.left_row, p.half)
                               : (gp_real)0;
        left_at.go_on(p.left_depth, p.depth_radix);
        left_k += GP_TILE_DEPTH;
        GP_UNROLL
        for (int i = 0; i < GP_TILE_DEPTH / 2; i++) {
            const Int y = h + right_at.middle * (Int)p.depth_step[0];
            const Int x = w + right_at.low * (Int)p.depth_step[1];
            const int inside = y >= 0 && y < (Int)p.size[0] && x >= 0 && x < (Int)p.size[1];
            from_right[i] = sees && right_k < end && inside
                                ? right.get(p.right, right_at.at, p.half)
                                : (gp_real)0;
            right_at.go_on(p.right_depth, p.depth_radix);
            right_k += GP_TILE_THREADS / GP_TILE;
        }
    }
};

/* Loaded as a whole from shared memory. */
struct alignas(16) gp_four {
    gp_real at[4];
};

/* The tile's steps in shared memory; rows are padded, since threads write down a column. */
typedef gp_four gp_tile_left[GP_TILE_DEPTH][GP_TILE / 4 + 1];
typedef gp_real gp_tile_right[GP_TILE_DEPTH][GP_TILE];

GP_DEVICE void gp_tile_put(gp_tile_left &left, gp_tile_right &right, const gp_real *from_left,
                           const gp_real *from_right)
{
    GP_UNROLL
    for (int i = 0; i < GP_TILE_ROWS; i++) {
        const unsigned row =
            threadIdx.x / GP_TILE_DEPTH + (unsigned)i * (GP_TILE_THREADS / GP_TILE_DEPTH);
        left[threadIdx.x % GP_TILE_DEPTH][row / 4].at[row % 4] = from_left[i];
    }
    GP_UNROLL
    for (int i = 0; i < GP_TILE_DEPTH / 2; i++)
        right[threadIdx.x / GP_TILE + (unsigned)i * (GP_TILE_THREADS / GP_TILE)]
             [threadIdx.x % GP_TILE] = from_right[i];
}

GP_DEVICE void gp_tile_multiply(const gp_tile_left &left, const gp_tile_right &right,
                                gp_real (&sum)[GP_TILE_ROWS][GP_TILE_COLUMNS])
{
    const unsigned row = threadIdx.x / GP_TILE_ACROSS * GP_TILE_ROWS;
    GP_UNROLL
    for (int k = 0; k < GP_TILE_DEPTH; k++) {
        gp_real column[GP_TILE_COLUMNS];
        GP_UNROLL
        for (int j = 0; j < GP_TILE_COLUMNS; j++)
            column[j] = right[k][threadIdx.x % GP_TILE_ACROSS + (unsigned)j * GP_TILE_ACROSS];
        GP_UNROLL
        for (int i = 0; i < GP_TILE_ROWS; i += 4) {
            const gp_four four = left[k][(row + (unsigned)i) / 4];
            GP_UNROLL
            for (int l = 0; l < 4; l++)
                GP_UNROLL
            for (int j = 0; j < GP_TILE_COLUMNS; j++)
                sum[i + l][j] += four.at[l] * column[j];
        }
    }
}

template <bool HALF>
GP_DEVICE void gp_tile_store(const gp_tiles &p, int64_t row, int64_t column, int64_t batch,
                             int64_t part, gp_real (&sum)[GP_TILE_ROWS][GP_TILE_COLUMNS])
{
    const int64_t first = row + threadIdx.x / GP_TILE_ACROSS * GP_TILE_ROWS;
    GP_UNROLL
    for (int j = 0; j < GP_TILE_COLUMNS; j++) {
        const int64_t own = column + threadIdx.x % GP_TILE_ACROSS + j * GP_TILE_ACROSS;
        if (own >= p.columns)
            break;
        const gp_digits d = gp_digits_of(own, p.column_radix);
        gp_tile_operand<HALF> to;
        to.begin(p.to, part * p.to_part + batch * p.to_batch + gp_digits_at(d, p.to_column));
        GP_UNROLL
        for (int i = 0; i < GP_TILE_ROWS && first + i < p.rows; i++) {
            const int64_t at = (first + i) * p.to_row;
            const gp_real before =
                p.bias.at ? gp_tile_get<HALF>(p.bias, batch * p.rows + first + i, p.half)
                : p.add   ? to.get(p.to, at, GP_F32)
                          : (gp_real)0;
            to.put(p.to, at, before + sum[i][j]);
        }
    }
}

/* Loads the next step of both operands while it multiplies the last one. */
template <class Int, bool HALF>
static __global__ void __launch_bounds__(GP_TILE_THREADS, GP_TILE_BLOCKS(HALF))
    gp_tiles_multiply(const gp_tiles p)
{
    GP_SHARED(gp_four, left, [GP_TILE_DEPTH][GP_TILE / 4 + 1]);
    GP_SHARED(gp_real, right, [GP_TILE_DEPTH][GP_TILE]);
    const int64_t across = gp_ceil_div(p.columns, GP_TILE), down = gp_ceil_div(p.rows, GP_TILE);
    for (GP_EACH_BLOCK(task, across * down * p.parts * p.batches)) {
        const int64_t column = task % across * GP_TILE, row = task / across % down * GP_TILE;
        const int64_t part = task / across / down % p.parts;
        const int64_t batch = task / across / down / p.parts;
        const int64_t from = part * p.part, to = gp_least(from + p.part, p.depth);
        gp_real from_left[GP_TILE_ROWS], from_right[GP_TILE_DEPTH / 2];
        gp_real sum[GP_TILE_ROWS][GP_TILE_COLUMNS] = {{0}};
        gp_tile_reader<Int, HALF> reader;
        reader.begin(p, row, column, batch, from, to);
        reader.read(p, from_left, from_right);
        for (int64_t k = from; k < to; k += GP_TILE_DEPTH) {
            gp_tile_put(left, right, from_left, from_right);
            __syncthreads(); /* the step is loaded */
            reader.read(p, from_left, from_right);
            gp_tile_multiply(left, right, sum);
            __syncthreads(); /* the step was read */
        }
        gp_tile_store<HALF>(p, row, column, batch, part, sum);
    }
}

/* to = bias + the parts in order. */
static __global__ void gp_tiles_join(const gp_real *parts, int64_t count, int64_t many,
                                     gp_reals bias, int32_t half, gp_tensor to)
{
    for (GP_EACH(i, count)) {
        int64_t at = 0, left = i, channel = 0;
        for (int d = to.rank; d-- > 0; left /= to.dim[d]) {
            at += left % to.dim[d] * to.stride[d];
            channel = d == 1 ? left % to.dim[d] : channel;
        }
        gp_real sum = bias.at ? gp_factor(bias, channel, half) : (gp_real)0;
        for (int64_t part = 0; part < many; part++)
            sum += parts[part * count + i];
        gp_reals_of(&to).put(at, sum);
    }
}

template <bool HALF>
static int gp_tiles_start(const gp_call *c, const gp_tiles &p, dim3 grid, int64_t most)
{
    if (most <= GP_NARROW)
        GP_LAUNCH(c, (gp_tiles_multiply<int32_t, HALF>), grid, GP_TILE_THREADS, 0, p);
    else
        GP_LAUNCH(c, (gp_tiles_multiply<int64_t, HALF>), grid, GP_TILE_THREADS, 0, p);
    return GP_OK;
}

/* Fills in what follows from the rest, and multiplies. */
GP_UNUSED static int gp_tiles_run(const gp_call *c, gp_tiles p)
{
    int64_t most = 0;
    const int64_t tiles = gp_ceil_div(p.columns, GP_TILE) * gp_ceil_div(p.rows, GP_TILE);
    if (p.rows <= 0 || p.columns <= 0 || p.batches <= 0)
        return GP_OK;
    p.part = gp_ceil_div(gp_ceil_div(p.depth, p.parts), GP_TILE_DEPTH) * GP_TILE_DEPTH;
    const gp_walk l = p.left_depth, r = p.right_depth;
    p.left_depth = gp_walk_of(l.stride[0], l.stride[1], l.stride[2], p.depth_radix, GP_TILE_DEPTH);
    p.right_depth =
        gp_walk_of(r.stride[0], r.stride[1], r.stride[2], p.depth_radix, GP_TILE_THREADS / GP_TILE);
    for (int i = 0; i < 2; i++) {
        const int64_t reach = gp_magnitude(p.first[i]) + p.size[i] +
                              (p.depth_radix[i] + GP_TILE_DEPTH) * gp_magnitude(p.depth_step[i]) +
                              p.column_radix[i] * gp_magnitude(p.column_step[i]);
        most = reach > most ? reach : most;
        most = p.depth_radix[i] + GP_TILE_DEPTH > most ? p.depth_radix[i] + GP_TILE_DEPTH : most;
    }
    const dim3 grid = gp_blocks(tiles * p.parts * p.batches, 1);
#ifndef GP_NO_HALF
    if (p.half != GP_F32)
        return gp_tiles_start<true>(c, p, grid, most);
#endif
    return gp_tiles_start<false>(c, p, grid, most);
}

#endif
