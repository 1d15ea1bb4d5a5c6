/* Dtypes: one row each. Those that are only stored are loaded, saved and cast; ops compute in the
 * others. The runtime numbers them alike (codegen/target.c compares). */
#ifndef GPLAN_DTYPE_H
#define GPLAN_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { DTYPE_COMPUTES, DTYPE_STORED } DtypeUse;

/* Id: also its name in safetensors files and, after GP_ or a prefix, in C. Name; bytes; C's type
 * in kernels and for callers; whether it holds fractions; what it is for; the ends of the range:
 * of integers as far as a double can say, of reals where it is less than that of f32. */
#define DTYPE_ROWS(ROW)                                                                        \
    ROW(F32, "f32", 4, "gp_real", "float", true, DTYPE_COMPUTES, 0, 0)                         \
    ROW(F16, "f16", 2, "gp_half", "uint16_t", true, DTYPE_COMPUTES, -65504, 65504)             \
    ROW(BF16, "bf16", 2, "gp_half", "uint16_t", true, DTYPE_COMPUTES, -0x1.fep127, 0x1.fep127) \
    ROW(I32, "i32", 4, "int32_t", "int32_t", false, DTYPE_COMPUTES, -0x1p31, 0x1p31 - 1)       \
    ROW(I64, "i64", 8, "int64_t", "int64_t", false, DTYPE_COMPUTES, -0x1p63, 0x1p63 - 1024)    \
    ROW(U8, "u8", 1, "uint8_t", "uint8_t", false, DTYPE_COMPUTES, 0, 255)                      \
    ROW(BOOL, "bool", 1, "uint8_t", "uint8_t", false, DTYPE_COMPUTES, 0, 1)                    \
    ROW(I8, "i8", 1, "int8_t", "int8_t", false, DTYPE_STORED, -128, 127)                       \
    ROW(U16, "u16", 2, "uint16_t", "uint16_t", false, DTYPE_STORED, 0, 65535)                  \
    ROW(U32, "u32", 4, "uint32_t", "uint32_t", false, DTYPE_STORED, 0, 0x1p32 - 1)             \
    ROW(F64, "f64", 8, "double", "double", true, DTYPE_STORED, 0, 0)

#define DTYPE_ID(id, ...) id,
typedef enum { DTYPE_ROWS(DTYPE_ID) DTYPES } Dtype;
#undef DTYPE_ID

#define DTYPE_WORD(id, name, ...) name " "
#define DTYPE_WORDS DTYPE_ROWS(DTYPE_WORD) /* in order, as the words of a setting */

typedef struct {
    const char *id, *name;
    size_t size;
    const char *type, *api_type;
    bool is_float;
    DtypeUse use;
    double low, high;
} DtypeRow;

const DtypeRow *dtype_row(Dtype dtype);
size_t dtype_size(Dtype dtype);
const char *dtype_name(Dtype dtype); /* "f32" */
Dtype dtype_find(const char *name);  /* DTYPES: unknown */
bool dtype_is_float(Dtype dtype);
bool dtype_computes(Dtype dtype);
bool dtype_is_real(Dtype dtype);            /* a float that ops compute in */
bool dtype_is_narrow(Dtype dtype);          /* one in 16 bits, computed as f32 and rounded */
const char *dtype_computed_as(Dtype dtype); /* of one that is only stored: what holds all of it, or
                                               the most */
bool dtype_holds(Dtype dtype, double number); /* without a change, save rounding */

#endif
