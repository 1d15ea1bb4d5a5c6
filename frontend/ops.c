/* The registry: every row of every file in ops/, in order of name. The build writes the list of
 * files into ops.inc, so adding an op touches nothing here.
 *
 * An elementwise row says its gradients as expressions; each becomes a hidden row here, so that
 * the rest of the compiler sees gradients as ops like any other.
 */
#include "frontend/frontend.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OPS(family) extern const OpRow ops_##family[];
#include "ops.inc"
#undef OPS

#define OPS(family) ops_##family,
static const OpRow *const families[] = {
#include "ops.inc"
};
#undef OPS

enum { MAX_OPS = 512, MAX_DERIVED = 192, MAX_EXPR = 256 };

/* Filled once, on first use; the same ever after. */
static const OpRow *rows[MAX_OPS];
static size_t row_count;
static OpRow derived[MAX_DERIVED];
static char derived_name[MAX_DERIVED][48], derived_expr[MAX_DERIVED][MAX_EXPR],
    derived_reads[MAX_DERIVED][8];
static size_t derived_count;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const OpRow *const *)a)->name, (*(const OpRow *const *)b)->name);
}

static void add(const OpRow *row)
{
    if (row_count == MAX_OPS)
        abort();
    rows[row_count++] = row;
}

/* ---- Gradients of elementwise rows ---------------------------------------------------------- */

/* The letter for an operand's name in a gradient expression: a b c d y, g for dy; 0: no operand. */
static char letter(const char *word, size_t length)
{
    if (length == 1 && strchr("abcdy", *word))
        return *word;
    return length == 2 && memcmp(word, "dy", 2) == 0 ? 'g' : 0;
}

/* Copies an expression with operands renamed a, b, c, ... in the order in which they first occur;
 * leaves what they were in `reads`. */
static void rename_operands(const char *from, char *to, char *reads)
{
    while (*from) {
        size_t length = 0;
        if (isalpha((unsigned char)*from) || *from == '_')
            while (isalnum((unsigned char)from[length]) || from[length] == '_')
                length++;
        else if (isdigit((unsigned char)*from)) /* a suffix or exponent is no operand */
            while (isalnum((unsigned char)from[length]) || from[length] == '.')
                length++;
        char operand = letter(from, length);
        if (operand) {
            if (!strchr(reads, operand))
                strncat(reads, &operand, 1);
            *to++ = (char)('a' + (strchr(reads, operand) - reads));
            from += length;
        } else {
            length = length ? length : 1;
            memcpy(to, from, length);
            to += length;
            from += length;
        }
    }
}

/* The condition of `where` stays a bool. */
static const char *dtype_of(const OpRow *row, char operand)
{
    return operand >= 'a' && operand <= 'd' ? row->args[operand - 'a'].words : NULL;
}

static void derive(const OpRow *row, int i)
{
    static const char *const name[] = {"a", "b", "c", "d", "e", "f"};
    size_t n = derived_count++;
    if (n == MAX_DERIVED || strlen(row->dexpr[i]) >= MAX_EXPR)
        abort();
    snprintf(derived_name[n], sizeof derived_name[n], "%s_d%c", row->name, 'a' + i);
    rename_operands(row->dexpr[i], derived_expr[n], derived_reads[n]);
    OpRow *made = &derived[n];
    *made = (OpRow){.name = derived_name[n],
                    .kernel = row->kernel,
                    .expr = derived_expr[n],
                    .reads = derived_reads[n],
                    .flags = OP_ELEMENTWISE | OP_HIDDEN | (row->flags & (OP_FLOAT | OP_RANDOM)),
                    .batch = row->batch};
    int count = 0;
    for (const char *operand = derived_reads[n]; *operand; operand++, count++)
        made->args[count] = (Arg){name[count], ARG_TENSOR, .words = dtype_of(row, *operand)};
    for (int k = 0; k < MAX_ARGS && row->args[k].name; k++)
        if (row->args[k].kind != ARG_TENSOR)
            made->args[count++] = row->args[k];
    add(made);
}

static bool is_expression(const char *dexpr)
{
    return dexpr && strcmp(dexpr, "dy") != 0 && strcmp(dexpr, "0") != 0;
}

/* ---- Looking up ----------------------------------------------------------------------------- */

static void fill(void)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const OpRow *row = families[i]; row->name; row++) {
            add(row);
            for (int k = 0; k < 4; k++)
                if (is_expression(row->dexpr[k]))
                    derive(row, k);
        }
    qsort(rows, row_count, sizeof *rows, by_name);
}

const OpRow *op_at(size_t i)
{
    if (!row_count)
        fill();
    return i < row_count ? rows[i] : NULL;
}

const OpRow *op_find(const char *name)
{
    if (!row_count)
        fill();
    OpRow key = {.name = name};
    const OpRow *wanted = &key;
    const OpRow **found = bsearch(&wanted, rows, row_count, sizeof *rows, by_name);
    return found ? *found : NULL;
}

int op_arg(const OpRow *op, const char *name)
{
    for (int i = 0; i < MAX_ARGS && op->args[i].name; i++)
        if (strcmp(op->args[i].name, name) == 0)
            return i;
    return -1;
}

static bool bit_of(uint32_t bits, Id operand)
{
    return operand < 32 ? bits >> operand & 1 : bits == UINT32_MAX;
}

bool op_takes_view(const OpRow *op, Id operand, const View *view)
{
    View sample = *view;
    if (op->flags & OP_ELEMENTWISE || bit_of(op->strided, operand) || view_is_dense(view))
        return true;
    if (sample.rank > 0)
        sample.dim[0] = 1;
    return bit_of(op->apart, operand) && view_is_dense(&sample);
}

bool op_takes(const OpRow *op, Dtype dtype)
{
    const uint32_t narrow = OP_ELEMENTWISE | OP_HALF | OP_STORED;
    return dtype_is_narrow(dtype) ? (op->flags & narrow) != 0
                                  : dtype_computes(dtype) || op->flags & OP_STORED;
}

bool op_has_kernel(const OpRow *op)
{
    return !op->build && !(op->flags & OP_ELEMENTWISE);
}

bool arg_is_setting(const Arg *arg)
{
    return arg->kind != ARG_TENSOR && arg->kind != ARG_STRING && !(arg->flags & ARG_FRONT);
}
