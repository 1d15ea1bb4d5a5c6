/* Graphs within a node: the branch of an If that is known to be taken, and the iterations of a Loop
 * or a Scan, written out. What depends on numbers that are known only when the model runs is
 * refused. */
#include "frontend/onnx/import.h"

#include <string.h>

enum { MAX_ITERATIONS = 4096, MAX_CARRIED = 64 };

/* ---- If ------------------------------------------------------------------------------------- */

/* The results of a branch. */
static bool take_branch(Import *m, const char *name, const Tensor **out)
{
    const OnnxGraph *graph = attr_graph(m, name);
    if (!graph)
        return false;
    if (graph->output.count > MAX_CARRIED || (int)graph->output.count != outputs(m) ||
        graph->input.count > 0)
        return refuse(m, "%s has %zu results", name, graph->output.count);
    return translate_body(m, graph, NULL, out);
}

/* The condition is known when the model runs: both are computed, and one is taken. */
static bool take_both(Import *m)
{
    const Expr *condition = CALL(m, "squeeze", {use(m, 0)});
    const Tensor *then[MAX_CARRIED], *otherwise[MAX_CARRIED];
    if (!take_branch(m, "then_branch", then) || !take_branch(m, "else_branch", otherwise))
        return false;
    for (int i = 0; i < outputs(m); i++) {
        bool same = then[i]->rank == otherwise[i]->rank && then[i]->elem == otherwise[i]->elem &&
                    memcmp(then[i]->dim, otherwise[i]->dim,
                           (size_t)then[i]->rank * sizeof *then[i]->dim) == 0;
        if (!same)
            return refuse(m, "the condition is not known, and its branches differ in shape");
        const Expr *one =
            CALL(m, "where", {condition}, {use_tensor(m, then[i])}, {use_tensor(m, otherwise[i])});
        if (!result_as(m, i, one, then[i]->elem))
            return false;
    }
    return true;
}

static bool branch(Import *m)
{
    const Tensor *condition = given(m, 0), *out[MAX_CARRIED];
    if (!condition)
        return refuse(m, "it has no condition");
    const Number *is = numbers(m, condition);
    if (!is)
        return take_both(m);
    if (is->expr)
        return refuse(m, "the condition follows from a free dimension");
    if (!take_branch(m, is->integer ? "then_branch" : "else_branch", out))
        return false;
    for (int i = 0; i < outputs(m); i++)
        if (!result_same(m, i, out[i]))
            return false;
    return true;
}

/* ---- What Loop and Scan share ---------------------------------------------------------------- */

/* What goes from one iteration to the next, and what is collected of each. */
typedef struct {
    Import *m;
    const OnnxGraph *body;
    int carried, scanned;                  /* results of the body */
    const Tensor *value[MAX_CARRIED];      /* carried */
    ARRAY(const Expr *) made[MAX_CARRIED]; /* by result that is scanned */
    int elem[MAX_CARRIED];                 /* likewise */
} Iterations;

static const Tensor *number_tensor(Import *m, int elem, int64_t number)
{
    Tensor *tensor = ARENA_NEW(m->arena, Tensor);
    Number *one = ARENA_NEW(m->arena, Number);
    *one = (Number){.real = (double)number, .integer = number};
    *tensor =
        (Tensor){.name = "", .elem = elem, .dtype = elem_dtype(elem), .number = one, .value = NONE};
    return tensor;
}

/* Of the body's results, those from `first` on: carried, then scanned. */
static bool end_iteration(Iterations *l, const Tensor *const *out, int first)
{
    for (int i = 0; i < l->carried; i++)
        l->value[i] = out[first + i];
    for (int i = 0; i < l->scanned; i++) {
        const Tensor *one = out[first + l->carried + i];
        const Number *number = one->expr || one->rank ? NULL : numbers(l->m, one);
        ARRAY_PUSH(l->m->arena, &l->made[i],
                   number ? constant_expr(l->m, one->elem, number) : use_tensor(l->m, one));
        l->elem[i] = one->elem;
    }
    return !l->m->failed;
}

static bool end_loop(const Iterations *l, const int *axis)
{
    Import *m = l->m;
    for (int i = 0; i < l->carried; i++)
        if (!result_same(m, i, l->value[i]))
            return false;
    for (int i = 0; i < l->scanned; i++) {
        if (!wanted(m, l->carried + i))
            continue;
        if (l->made[i].count == 0)
            return refuse(m, "result %d is empty", l->carried + i);
        const Expr *all = CALL(m, "stack", {list(m, l->made[i].count, l->made[i].at)},
                               {integer(m, axis ? axis[i] : 0), "axis"});
        if (!result_as(m, l->carried + i, all, l->elem[i]))
            return false;
    }
    return true;
}

static bool begin_body(Iterations *l, size_t inputs_wanted, size_t least_outputs)
{
    l->body = attr_graph(l->m, "body");
    if (!l->body)
        return false;
    size_t results = l->body->output.count;
    if (l->body->input.count != inputs_wanted || results < least_outputs || results > MAX_CARRIED ||
        inputs_wanted > MAX_CARRIED)
        return refuse(l->m, "its body has %zu inputs and %zu results", l->body->input.count,
                      results);
    return true;
}

/* ---- Loop ----------------------------------------------------------------------------------- */

/* A number that must be known; `fallback` where it is left out. */
static bool known_number(Import *m, int i, const char *what, int64_t fallback, int64_t *number)
{
    int64_t count;
    *number = fallback;
    if (i >= inputs(m) || !given(m, i))
        return true;
    const int64_t *one = known_ints(m, i, what, &count);
    if (one && count != 1)
        return refuse(m, "%s has %lld numbers", what, (long long)count);
    if (one)
        *number = *one;
    return one != NULL;
}

static bool loop(Import *m)
{
    Iterations l = {.m = m, .carried = inputs(m) - 2};
    int64_t times, going;
    if (l.carried < 0 || l.carried + 2 > MAX_CARRIED)
        return refuse(m, "it has %d inputs", inputs(m));
    if (!known_number(m, 0, "the number of iterations", INT64_MAX, &times) ||
        !known_number(m, 1, "the condition", 1, &going) ||
        !begin_body(&l, (size_t)l.carried + 2, (size_t)l.carried + 1))
        return false;
    l.scanned = (int)l.body->output.count - 1 - l.carried;
    for (int i = 0; i < l.carried; i++)
        if (!(l.value[i] = given(m, 2 + i)))
            return refuse(m, "input %d is missing", 2 + i);
    for (int64_t k = 0; k < times && going; k++) {
        const Tensor *in[MAX_CARRIED], *out[MAX_CARRIED];
        if (k == MAX_ITERATIONS)
            return refuse(m, "more than %d iterations", MAX_ITERATIONS);
        in[0] = number_tensor(m, ELEM_INT64, k);
        in[1] = number_tensor(m, ELEM_BOOL, 1);
        memcpy(in + 2, l.value, (size_t)l.carried * sizeof *in);
        if (!translate_body(m, l.body, in, out) || !end_iteration(&l, out, 1))
            return false;
        const Number *go = numbers(m, out[0]);
        if (!go || go->expr)
            return refuse(m, "whether it goes on is known only when the model runs");
        going = go->integer;
    }
    return end_loop(&l, NULL);
}

/* ---- Scan ----------------------------------------------------------------------------------- */

/* What each iteration sees of an input. */
static const Tensor *piece(Import *m, const Tensor *x, int axis, int64_t at)
{
    const Expr *one = slice_axis(m, use_tensor(m, x), axis, integer(m, at), integer(m, at + 1));
    const Tensor *made = state(m, CALL(m, "squeeze", {one}, {integer(m, axis), "axis"}));
    Tensor *typed = made ? tensor_copy(m, made) : NULL;
    if (typed)
        typed->elem = x->elem;
    return typed;
}

typedef struct {
    int axis[MAX_CARRIED];
    bool reverse[MAX_CARRIED];
} Directions;

/* Axes and directions of what is scanned: inputs, or results. */
static bool read_directions(Import *m, const char *axes, const char *directions, int count,
                            const int *rank, Directions *d)
{
    size_t axis_count, way_count;
    const int64_t *axis = attr_ints(m, axes, &axis_count);
    const int64_t *way = attr_ints(m, directions, &way_count);
    for (int i = 0; i < count; i++) {
        d->axis[i] = 0;
        d->reverse[i] = way && (size_t)i < way_count && way[i] != 0;
        if (axis && (size_t)i < axis_count && !take_axis(m, axis[i], rank[i], &d->axis[i]))
            return false;
    }
    return true;
}

static void reverse_made(Iterations *l, int i)
{
    for (size_t a = 0, b = l->made[i].count; a + 1 < b; a++) {
        const Expr *last = l->made[i].at[--b];
        l->made[i].at[b] = l->made[i].at[a];
        l->made[i].at[a] = last;
    }
}

static bool scan(Import *m)
{
    int pieces = (int)attr_int(m, "num_scan_inputs", 0);
    Iterations l = {.m = m, .carried = inputs(m) - pieces};
    Directions in_way, out_way;
    int rank[MAX_CARRIED];
    if (pieces < 1 || l.carried < 0 || inputs(m) > MAX_CARRIED)
        return refuse(m, "num_scan_inputs is %d", pieces);
    if (!begin_body(&l, (size_t)inputs(m), (size_t)l.carried))
        return false;
    l.scanned = (int)l.body->output.count - l.carried;
    for (int i = 0; i < inputs(m); i++) {
        if (!given(m, i))
            return refuse(m, "input %d is missing", i);
        if (i < l.carried)
            l.value[i] = given(m, i);
        else
            rank[i - l.carried] = given(m, i)->rank;
    }
    if (!read_directions(m, "scan_input_axes", "scan_input_directions", pieces, rank, &in_way))
        return false;
    const Tensor *first = given(m, l.carried);
    int64_t times = first->rank ? first->dim[in_way.axis[0]] : 0;
    if (first->rank == 0 || first->open[in_way.axis[0]] || times > MAX_ITERATIONS)
        return refuse(m, "the number of iterations must be known, and at most %d", MAX_ITERATIONS);
    for (int64_t k = 0; k < times; k++) {
        const Tensor *in[MAX_CARRIED], *out[MAX_CARRIED];
        memcpy(in, l.value, (size_t)l.carried * sizeof *in);
        for (int i = 0; i < pieces; i++) {
            int64_t at = in_way.reverse[i] ? times - 1 - k : k;
            if (!(in[l.carried + i] = piece(m, given(m, l.carried + i), in_way.axis[i], at)))
                return false;
        }
        if (!translate_body(m, l.body, in, out) || !end_iteration(&l, out, 0))
            return false;
        for (int i = 0; i < l.scanned; i++)
            rank[i] = out[l.carried + i]->rank + 1;
    }
    if (!read_directions(m, "scan_output_axes", "scan_output_directions", l.scanned, rank,
                         &out_way))
        return false;
    for (int i = 0; i < l.scanned; i++)
        if (out_way.reverse[i])
            reverse_made(&l, i);
    return end_loop(&l, out_way.axis);
}

const Translation onnx_control[] = {
    {"If", 1, branch},
    {"Loop", 1, loop},
    {"Scan", 9, scan},
    {0},
};
