/* Einsum: operands are joined one after the other, each pair by one matrix product.
 *
 * A label that occurs twice in an operand takes its diagonal; one that is no longer needed is
 * summed away. The axes of "..." have labels of their own, counted from the last. */
#include "frontend/onnx/translate.h"

#include <ctype.h>
#include <string.h>

enum {
    LETTERS = 52,
    LABELS = LETTERS + MAX_RANK, /* those after the letters are axes of "..." */
    MAX_OPERANDS = 16,
};

/* A value with a label for each axis. */
typedef struct {
    const Tensor *tensor;
    int rank;
    int label[MAX_RANK];
} Term;

typedef struct {
    Import *m;
    Term term[MAX_OPERANDS];
    int terms;
    Term out;                 /* labels only */
    const Expr *size[LABELS]; /* NULL: not seen yet */
    int dots;                 /* axes of "...", in the operand that has most of them */
} Equation;

static int label_of(char letter)
{
    return islower((unsigned char)letter) ? letter - 'a' : 26 + letter - 'A';
}

/* ---- The text ------------------------------------------------------------------------------- */

/* Labels up to a comma or the arrow. `rank`: of the operand; -1: as many as "..." has in all. */
static const char *read_labels(Equation *e, const char *at, int rank, Term *term)
{
    int letters = 0;
    for (const char *p = at; *p && *p != ',' && *p != '-'; p++)
        letters += isalpha((unsigned char)*p) != 0;
    int dots = rank < 0 ? e->dots : rank - letters;
    while (*at && *at != ',' && *at != '-') {
        int label = -1, times = 1;
        if (strncmp(at, "...", 3) == 0 && dots >= 0) {
            label = LETTERS + MAX_RANK - dots;
            times = dots;
            at += 2;
        } else if (isalpha((unsigned char)*at)) {
            label = label_of(*at);
        } else if (!isspace((unsigned char)*at)) {
            return NULL;
        }
        at++;
        for (int i = 0; i < times && label >= 0; i++) {
            if (term->rank == MAX_RANK)
                return NULL;
            term->label[term->rank++] = label + i;
        }
    }
    if (rank >= 0 && dots > e->dots)
        e->dots = dots;
    return rank >= 0 && term->rank != rank ? NULL : at;
}

static int count_label(const Equation *e, int label)
{
    int count = 0;
    for (int i = 0; i < e->terms; i++)
        for (int k = 0; k < e->term[i].rank; k++)
            count += e->term[i].label[k] == label;
    return count;
}

/* Without an arrow: "..." and then labels that occur once, in the order of the alphabet. */
static bool default_output(Equation *e)
{
    static const char order[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int i = LABELS - e->dots; i < LABELS; i++)
        e->out.label[e->out.rank++] = i;
    for (const char *p = order; *p; p++)
        if (count_label(e, label_of(*p)) == 1) {
            if (e->out.rank == MAX_RANK)
                return false;
            e->out.label[e->out.rank++] = label_of(*p);
        }
    return true;
}

static bool parse_equation(Equation *e, const char *text)
{
    const char *at = text;
    for (int i = 0; i < e->terms; i++) {
        at = read_labels(e, at, e->term[i].tensor->rank, &e->term[i]);
        if (!at || (i + 1 < e->terms && *at++ != ','))
            return false;
    }
    if (!*at)
        return default_output(e);
    if (strncmp(at, "->", 2) != 0)
        return false;
    at = read_labels(e, at + 2, -1, &e->out);
    return at && !*at;
}

static void note_sizes(Equation *e)
{
    for (int i = 0; i < e->terms; i++)
        for (int k = 0; k < e->term[i].rank; k++)
            if (!e->size[e->term[i].label[k]] || e->term[i].tensor->dim[k] > 1)
                e->size[e->term[i].label[k]] = size_of(e->m, e->term[i].tensor, k);
}

/* ---- One operand ---------------------------------------------------------------------------- */

static int find_label(const Term *term, int label)
{
    for (int k = 0; k < term->rank; k++)
        if (term->label[k] == label)
            return k;
    return -1;
}

static void drop_axis(Term *term, int axis)
{
    memmove(&term->label[axis], &term->label[axis + 1],
            (size_t)(term->rank - axis - 1) * sizeof *term->label);
    term->rank--;
}

static bool put(Equation *e, Term *term, const Expr *value)
{
    term->tensor = state(e->m, value);
    return term->tensor != NULL;
}

/* The diagonal along axes a < b: what is off it becomes 0, and b is summed away. */
static bool take_diagonal(Equation *e, Term *term, int a, int b)
{
    Import *m = e->m;
    const Expr *count = size_of(m, term->tensor, b), *shape[MAX_RANK];
    for (int i = 0; i < b - a + 1; i++)
        shape[i] = i == 0 ? count : integer(m, 1);
    const Expr *place = CALL(m, "arange", {count});
    const Expr *rows = reshape(m, place, (size_t)(b - a + 1), shape);
    const Expr *on = binary(m, "equal", rows, place);
    for (int i = b + 1; i < term->rank; i++)
        on = CALL(m, "unsqueeze", {on}, {integer(m, -1), "axis"});
    const Expr *zero = zero_like(m, term->tensor);
    const Expr *kept = CALL(m, "where", {on}, {term->tensor->expr}, {zero});
    if (!put(e, term, CALL(m, "sum", {kept}, {integer(m, b), "axis"})))
        return false;
    drop_axis(term, b);
    return true;
}

static bool take_diagonals(Equation *e, Term *term)
{
    for (int b = term->rank - 1; b > 0; b--) {
        int a = find_label(term, term->label[b]);
        if (a < b && !take_diagonal(e, term, a, b))
            return false;
    }
    return true;
}

/* Whether the result or an operand from `next` on has the label. */
static bool is_needed(const Equation *e, int label, int next)
{
    if (find_label(&e->out, label) >= 0)
        return true;
    for (int i = next; i < e->terms; i++)
        if (find_label(&e->term[i], label) >= 0)
            return true;
    return false;
}

/* Sums away what neither `other` nor anybody later has. */
static bool sum_alone(Equation *e, Term *term, const Term *other, int next)
{
    for (int k = term->rank - 1; k >= 0; k--) {
        if (is_needed(e, term->label[k], next) || (other && find_label(other, term->label[k]) >= 0))
            continue;
        const Expr *sum = CALL(e->m, "sum", {term->tensor->expr}, {integer(e->m, k), "axis"});
        if (!put(e, term, sum))
            return false;
        drop_axis(term, k);
    }
    return true;
}

/* The axes in the order of these labels, all of which it has. */
static const Expr *in_order(Equation *e, const Term *term, int rank, const int *label)
{
    int64_t perm[MAX_RANK];
    bool same = true;
    for (int i = 0; i < rank; i++) {
        perm[i] = find_label(term, label[i]);
        same &= perm[i] == i;
    }
    if (same)
        return term->tensor->expr;
    return CALL(e->m, "transpose", {term->tensor->expr}, {ints(e->m, (size_t)rank, perm), "perm"});
}

/* ---- Two operands --------------------------------------------------------------------------- */

typedef struct {
    int count, label[MAX_RANK];
} Labels;

static void add_label(Labels *labels, int label)
{
    labels->label[labels->count++] = label;
}

static const Expr *product_of(Equation *e, const Labels *labels)
{
    const Expr *size = integer(e->m, 1);
    for (int i = 0; i < labels->count; i++)
        size = i == 0 ? e->size[labels->label[i]]
                      : binary(e->m, "mul", size, e->size[labels->label[i]]);
    return size;
}

/* [batch..., rows, columns] of the axes in these groups. */
static const Expr *as_matrix(Equation *e, const Term *term, const Labels *batch, const Labels *rows,
                             const Labels *columns)
{
    Labels all = *batch;
    for (int i = 0; i < rows->count; i++)
        add_label(&all, rows->label[i]);
    for (int i = 0; i < columns->count; i++)
        add_label(&all, columns->label[i]);
    const Expr *x = in_order(e, term, all.count, all.label), *dim[MAX_RANK + 2];
    for (int i = 0; i < batch->count; i++)
        dim[i] = e->size[batch->label[i]];
    dim[batch->count] = product_of(e, rows);
    dim[batch->count + 1] = product_of(e, columns);
    return rows->count == 1 && columns->count == 1
               ? x
               : reshape(e->m, x, (size_t)batch->count + 2, dim);
}

static bool join(Equation *e, Term *left, Term *right, int next)
{
    Labels batch = {0}, inner = {0}, rows = {0}, columns = {0};
    if (!sum_alone(e, left, right, next) || !sum_alone(e, right, left, next))
        return false;
    for (int k = 0; k < left->rank; k++) {
        int label = left->label[k];
        bool both = find_label(right, label) >= 0;
        add_label(!both ? &rows : is_needed(e, label, next) ? &batch : &inner, label);
    }
    for (int k = 0; k < right->rank; k++)
        if (find_label(left, right->label[k]) < 0)
            add_label(&columns, right->label[k]);
    Term made = {0};
    if (batch.count > MAX_RANK - 2 || batch.count + rows.count + columns.count > MAX_RANK)
        return refuse(e->m, "more than %d dimensions on the way", MAX_RANK);
    const Expr *x = binary(e->m, "matmul", as_matrix(e, left, &batch, &rows, &inner),
                           as_matrix(e, right, &batch, &inner, &columns));
    const Labels *const group[] = {&batch, &rows, &columns};
    const Expr *dim[MAX_RANK];
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < group[g]->count; i++) {
            dim[made.rank] = e->size[group[g]->label[i]];
            made.label[made.rank++] = group[g]->label[i];
        }
    if (rows.count != 1 || columns.count != 1)
        x = reshape(e->m, x, (size_t)made.rank, dim);
    *left = made;
    return put(e, left, x);
}

static bool check_sizes(Equation *e)
{
    for (int i = 0; i < e->out.rank; i++)
        if (!e->size[e->out.label[i]])
            return refuse(e->m, "equation: the result has a label that no operand has");
    return true;
}

static bool einsum(Import *m)
{
    Equation e = {.m = m, .terms = inputs(m)};
    const char *text = attr_word(m, "equation", "");
    if (e.terms < 1 || e.terms > MAX_OPERANDS)
        return refuse(m, "it has %d operands", e.terms);
    for (int i = 0; i < e.terms; i++) {
        const Tensor *x = given(m, i);
        if (!x)
            return refuse(m, "operand %d is missing", i);
        if (x->dtype != F32 && e.terms > 1)
            return refuse(m, "products of %s", elem_name(x->elem));
        e.term[i].tensor = x;
    }
    if (!parse_equation(&e, text))
        return refuse(m, "equation: \"%s\" does not fit the operands", text);
    for (int i = 0; i < e.terms; i++) {
        Tensor *stated = tensor_copy(m, e.term[i].tensor);
        stated->expr = weight(m, i, "weight");
        e.term[i].tensor = stated;
    }
    note_sizes(&e);
    if (!check_sizes(&e))
        return false;
    for (int i = 0; i < e.terms; i++)
        if (!take_diagonals(&e, &e.term[i]))
            return false;
    for (int i = 1; i < e.terms; i++)
        if (!join(&e, &e.term[0], &e.term[i], i + 1))
            return false;
    if (!sum_alone(&e, &e.term[0], NULL, e.terms))
        return false;
    return result(m, 0, in_order(&e, &e.term[0], e.out.rank, e.out.label));
}

const Translation onnx_einsum[] = {
    {"Einsum", 12, einsum},
    {0},
};
