/* Initial values of parameters. */
#ifndef GP_INIT_H
#define GP_INIT_H

#include "hash.h"
#include "narrow.h"
#include "rng.h"

enum { GP_INIT_PIECE = GP_BLOCK(256, 8) }; /* numbers that are drawn before they are rounded */

enum { GP_INIT_CONST, GP_INIT_UNIFORM, GP_INIT_NORMAL, GP_INIT_LIST, GP_INIT_FILE };

typedef struct {
    int kind;
    double a, b; /* const: a; uniform: from a to b; normal: mean a, standard deviation b; file:
                    unchanged */
    const double *list;
    size_t count; /* length of list */
} gp_init;

GP_HOST void gp_set(void *data, int dtype, int64_t i, double number)
{
    if (GP_WAY(init_reals, dtype == GP_F32))
        ((gp_real *)data)[i] = (gp_real)number;
    else if (dtype == GP_F64)
        ((double *)data)[i] = number;
    else if (gp_size(dtype) == 8)
        ((int64_t *)data)[i] = (int64_t)number;
    else if (gp_size(dtype) == 4)
        ((uint32_t *)data)[i] = (uint32_t)(int64_t)number;
    else if (gp_size(dtype) == 2) /* f16 and bf16 by their bits */
        ((uint16_t *)data)[i] = (uint16_t)(int64_t)number;
    else
        ((uint8_t *)data)[i] = (uint8_t)(int64_t)number;
}

/* `count` elements from `from`, a multiple of 4: so a tensor can be initialized in pieces. */
GP_HOST void gp_initialize(const gp_run *run, const gp_init *init, const char *name, void *data,
                           int dtype, int64_t from, int64_t count)
{
    (void)run, (void)name; /* for random numbers alone */
    if (GP_WAY(init_file, init->kind == GP_INIT_FILE))
        return;
    const int draws = init->kind == GP_INIT_UNIFORM || init->kind == GP_INIT_NORMAL;
    if (GP_WAY(init_narrow, draws && dtype != GP_F32)) { /* as f32, rounded */
        gp_real wide[GP_INIT_PIECE];
        for (int64_t i = 0, some; i < count; i += some) {
            some = count - i < GP_INIT_PIECE ? count - i : (int64_t)GP_INIT_PIECE;
            gp_initialize(run, init, name, wide, GP_F32, from + i, some);
            gp_set_row((gp_half *)data + i, wide, some, dtype);
        }
        return;
    }
    if (GP_WAY(init_uniform, init->kind == GP_INIT_UNIFORM)) {
        gp_random_uniform(run, gp_key(name), init->a, init->b, (gp_real *)data, from, count);
        return;
    }
    if (GP_WAY(init_normal, init->kind == GP_INIT_NORMAL)) {
        gp_random_normal(run, gp_key(name), init->a, init->b, (gp_real *)data, from, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        gp_set(data, dtype, i, init->kind == GP_INIT_LIST ? init->list[from + i] : init->a);
}

#endif
