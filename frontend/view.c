/* Dims and views: the arithmetic of shapes. Knows nothing of ops. */
#include "frontend/frontend.h"

#include <assert.h>
#include <string.h>

/* Bytes of one tensor: what a program can address, far below where sums of them overflow. */
static const int64_t MAX_BYTES = INT64_C(1) << 47;

static View dense_view(int rank, const int64_t *dim)
{
    View view = {.rank = (uint8_t)rank};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        view.dim[i] = dim[i];
        view.stride[i] = stride;
        stride *= dim[i];
    }
    return view;
}

View value_view(const Value *value)
{
    return dense_view(value->rank, value->dim);
}

View use_view(const Graph *g, Use use)
{
    return use.view == NONE ? value_view(&g->value.at[use.value]) : g->view.at[use.view];
}

Use use_of(Id value)
{
    return (Use){value, NONE};
}

bool view_is_plain(const View *view, const Value *value)
{
    return view->rank == value->rank &&
           memcmp(view->dim, value->dim, view->rank * sizeof *view->dim) == 0 &&
           view->offset == 0 && view_is_dense(view);
}

bool view_is_dense(const View *view)
{
    int64_t stride = 1;
    for (int i = view->rank - 1; i >= 0; i--) {
        if (view->dim[i] != 1 && view->stride[i] != stride)
            return false;
        stride *= view->dim[i];
    }
    return true;
}

Use use_make(Graph *g, Id value, View view)
{
    if (view_is_plain(&view, &g->value.at[value]))
        return use_of(value);
    ARRAY_PUSH(g->arena, &g->view, view);
    return (Use){value, (Id)(g->view.count - 1)};
}

int64_t view_count(const View *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= view->dim[i];
    return count;
}

int64_t value_count(const Value *value)
{
    int64_t count = 1;
    for (int i = 0; i < value->rank; i++)
        count *= value->dim[i];
    return count;
}

uint64_t value_bytes(const Value *value)
{
    return value->kind == VALUE_LITERAL
               ? 0
               : (uint64_t)value_count(value) * dtype_size((Dtype)value->dtype);
}

char *shape_text(Arena *arena, Dtype dtype, int rank, const int64_t *dim)
{
    char text[MAX_RANK * 24] = "";
    int length = 0;
    for (int i = 0; i < rank; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%lld", i ? ", " : "",
                           (long long)dim[i]);
    return arena_printf(arena, "%s[%s]", dtype == DTYPES ? "" : dtype_name(dtype), text);
}

char *use_text(const Graph *g, Use use)
{
    View view = use_view(g, use);
    return shape_text(g->arena, (Dtype)g->value.at[use.value].dtype, view.rank, view.dim);
}

bool dims_check(Dtype dtype, int rank, const int64_t *dim, const char **error)
{
    int64_t bytes = (int64_t)dtype_size(dtype);
    *error = NULL;
    if (rank > MAX_RANK)
        *error = "more than 8 dimensions";
    for (int i = 0; i < rank && !*error; i++) {
        if (dim[i] <= 0)
            *error = "a dimension is not positive";
        else if (bytes > MAX_BYTES / dim[i])
            *error = "the tensor is too large: more than 2^47 bytes";
        else
            bytes *= dim[i];
    }
    return !*error;
}

int dims_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int64_t *out)
{
    int rank = rank_a > rank_b ? rank_a : rank_b;
    for (int i = 0; i < rank; i++) { /* from the last axis to the first */
        int64_t m = i < rank_a ? a[rank_a - 1 - i] : 1;
        int64_t n = i < rank_b ? b[rank_b - 1 - i] : 1;
        if (m != n && m != 1 && n != 1)
            return -1;
        out[rank - 1 - i] = m == 1 ? n : m;
    }
    return rank;
}

View view_broadcast(const View *view, int rank, const int64_t *dim)
{
    View out = {.rank = (uint8_t)rank, .offset = view->offset};
    assert(rank >= view->rank);
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - view->rank);
        out.dim[i] = dim[i];
        if (from >= 0 && view->dim[from] == dim[i])
            out.stride[i] = view->stride[from];
        else
            assert(from < 0 || view->dim[from] == 1);
    }
    return out;
}

/* Splits the block of old axes [from, to) that is contiguous (each stride is the next one's
 * times its dim) into new axes [first, last). */
static bool lies_evenly(const View *view, int from, int to)
{
    for (int i = from; i + 1 < to; i++)
        if (view->stride[i] != view->stride[i + 1] * view->dim[i + 1])
            return false;
    return true;
}

bool view_reshape(const View *given, int rank, const int64_t *dim, View *out)
{
    View view = {.offset = given->offset}; /* without axes of size 1: their strides say nothing */
    for (int i = 0; i < given->rank; i++)
        if (given->dim[i] != 1) {
            view.dim[view.rank] = given->dim[i];
            view.stride[view.rank++] = given->stride[i];
        }
    *out = (View){.rank = (uint8_t)rank, .offset = given->offset};
    memcpy(out->dim, dim, (size_t)rank * sizeof *dim);

    int i = 0, j = 0;
    while (i < view.rank) { /* the shortest runs of equal product, pair by pair */
        int old_begin = i, new_begin = j;
        int64_t have = view.dim[i++], want = 1;
        while (want != have) {
            if (want < have) {
                if (j == rank)
                    return false;
                want *= dim[j++];
            } else {
                if (i == view.rank)
                    return false;
                have *= view.dim[i++];
            }
        }
        if (!lies_evenly(&view, old_begin, i))
            return false;
        int64_t stride = view.stride[i - 1];
        for (int k = j - 1; k >= new_begin; k--) {
            out->stride[k] = stride;
            stride *= dim[k];
        }
    }
    for (; j < rank; j++) {
        if (dim[j] != 1)
            return false;
        out->stride[j] = 1;
    }
    return true;
}
