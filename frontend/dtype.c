/* The table of dtypes, and questions to it. */
#include "frontend/dtype.h"

#include <math.h>
#include <string.h>

#define ROW(id, name, size, type, api_type, is_float, use, low, high) \
    [id] = {#id, name, size, type, api_type, is_float, use, low, high},
static const DtypeRow dtypes[DTYPES] = {DTYPE_ROWS(ROW)};
#undef ROW

const DtypeRow *dtype_row(Dtype dtype)
{
    return &dtypes[dtype];
}

size_t dtype_size(Dtype dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(Dtype dtype)
{
    return dtypes[dtype].name;
}

Dtype dtype_find(const char *name)
{
    Dtype dtype = F32;
    while (dtype < DTYPES && strcmp(dtypes[dtype].name, name) != 0)
        dtype++;
    return dtype;
}

bool dtype_is_float(Dtype dtype)
{
    return dtypes[dtype].is_float;
}

bool dtype_computes(Dtype dtype)
{
    return dtypes[dtype].use == DTYPE_COMPUTES;
}

bool dtype_is_real(Dtype dtype)
{
    return dtype_is_float(dtype) && dtype_computes(dtype);
}

bool dtype_is_narrow(Dtype dtype)
{
    return dtype_is_real(dtype) && dtypes[dtype].size < dtypes[F32].size;
}

const char *dtype_computed_as(Dtype dtype)
{
    const DtypeRow *row = &dtypes[dtype];
    return row->is_float ? "f32" : row->high <= dtypes[I32].high ? "i32" : "i64";
}

bool dtype_holds(Dtype dtype, double number)
{
    const DtypeRow *row = &dtypes[dtype];
    const bool within = number >= row->low && number <= row->high;
    if (row->is_float) /* what f32 has as an infinity is one everywhere */
        return within || row->high == 0 || isinf((float)number) || isnan(number);
    return within && number == floor(number);
}
