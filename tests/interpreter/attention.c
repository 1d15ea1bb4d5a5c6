/* Attention on given projections (Vaswani et al., 2017): softmax(q k' * scale) v for each head. */
#include "tests/interpreter/interpreter.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    int64_t batch, heads, shared; /* shared: heads of q for each of k and v */
    int64_t queries, keys, size, value_size;
    double scale;
    bool causal, masked, bool_mask;
} Sizes;

static Sizes sizes_of(const Run *r)
{
    const Array *q = &r->in[0], *v = &r->in[2];
    Sizes s = {.batch = q->dim[0], .heads = q->dim[1], .shared = q->dim[1] / v->dim[1]};
    s.queries = q->dim[2];
    s.size = q->dim[3];
    s.keys = v->dim[2];
    s.value_size = v->dim[3];
    s.scale = run_number(r, "scale");
    s.causal = run_int(r, "causal");
    s.masked = r->ins > 3 && r->in[3].at;
    if (s.masked) {
        Id mask = node_use(r->g, &r->g->node.at[r->node], 3).value;
        s.bool_mask = r->g->value.at[mask].dtype == BOOL;
    }
    return s;
}

/* Where head h of sample b begins in k or v. */
static const double *kv_head(const Array *a, const Sizes *s, int64_t b, int64_t h)
{
    return a->at + (b * a->dim[1] + h / s->shared) * a->dim[2] * a->dim[3];
}

static double seen(const Run *r, const Sizes *s, int64_t head, int64_t i, int64_t j, double score)
{
    if (s->causal && j > i + s->keys - s->queries) /* the last query sees all keys */
        return -INFINITY;
    if (!s->masked)
        return score;
    double mask = r->in[3].at[(head * s->queries + i) * s->keys + j];
    if (s->bool_mask)
        return mask != 0 ? score : -INFINITY;
    return score + mask;
}

/* weight[queries, keys], and the logarithm of the sum of each row's exps. */
static void weigh(const Run *r, const Sizes *s, int64_t head, double *weight, double *log_sum)
{
    const double *q = r->in[0].at + head * s->queries * s->size;
    const double *k = kv_head(&r->in[1], s, head / s->heads, head % s->heads);
    double *transposed = need_doubles(s->keys * s->size);
    transpose(s->keys, s->size, k, transposed);
    product(s->queries, s->keys, s->size, q, transposed, weight);
    for (int64_t i = 0; i < s->queries; i++) {
        double *row = weight + i * s->keys, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s->keys; j++) {
            row[j] = seen(r, s, head, i, j, row[j] * s->scale);
            most = row[j] > most ? row[j] : most;
        }
        for (int64_t j = 0; j < s->keys; j++)
            sum += row[j] = most == -INFINITY ? 0 : exp(row[j] - most);
        for (int64_t j = 0; j < s->keys; j++)
            row[j] = sum > 0 ? row[j] / sum : 0;
        if (log_sum)
            log_sum[i] = most + log(sum);
    }
    free(transposed);
}

/* The result lies as [B, T, H, D]. */
static int64_t result_place(const Sizes *s, int64_t head, int64_t i)
{
    return ((head / s->heads * s->queries + i) * s->heads + head % s->heads) * s->value_size;
}

static void attend(const Run *r)
{
    Sizes s = sizes_of(r);
#pragma omp parallel for
    for (int64_t head = 0; head < s.batch * s.heads; head++) {
        double *weight = need_doubles(s.queries * s.keys);
        double *y = need_doubles(s.queries * s.value_size);
        weigh(r, &s, head, weight, r->out[1].at + head * s.queries);
        product(s.queries, s.value_size, s.keys, weight,
                kv_head(&r->in[2], &s, head / s.heads, head % s.heads), y);
        for (int64_t i = 0; i < s.queries; i++)
            for (int64_t d = 0; d < s.value_size; d++)
                r->out[0].at[result_place(&s, head, i) + d] = y[i * s.value_size + d];
        free(weight);
        free(y);
    }
}

static void add_to(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; to && i < count; i++)
        to[i] += from[i];
}

/* With p the weights: dv = p' dy; dp = dy v'; ds = p * (dp - sum(p dp)); dq = ds k, dk = ds' q. */
static void attend_head_back(const Run *r, const Sizes *s, int64_t head)
{
    int64_t pairs = s->queries * s->keys, b = head / s->heads, h = head % s->heads;
    const double *q = r->in[0].at + head * s->queries * s->size;
    const double *k = kv_head(&r->in[1], s, b, h), *v = kv_head(&r->in[2], s, b, h);
    double *weight = need_doubles(pairs), *score = need_doubles(pairs),
           *transposed = need_doubles(pairs);
    double *dy = need_doubles(s->queries * s->value_size);
    double *v_transposed = need_doubles(s->keys * s->value_size);
    double *dq = need_doubles(s->queries * s->size), *dk = need_doubles(s->keys * s->size);
    double *dv = need_doubles(s->keys * s->value_size);
    weigh(r, s, head, weight, NULL);
    for (int64_t i = 0; i < s->queries; i++)
        for (int64_t d = 0; d < s->value_size; d++)
            dy[i * s->value_size + d] = r->dout[0].at[result_place(s, head, i) + d];
    transpose(s->queries, s->keys, weight, transposed);
    product(s->keys, s->value_size, s->queries, transposed, dy, dv);
    transpose(s->keys, s->value_size, v, v_transposed);
    product(s->queries, s->keys, s->value_size, dy, v_transposed, score);
    for (int64_t i = 0; i < s->queries; i++) {
        double sum = 0;
        for (int64_t j = 0; j < s->keys; j++)
            sum += weight[i * s->keys + j] * score[i * s->keys + j];
        for (int64_t j = 0; j < s->keys; j++)
            score[i * s->keys + j] =
                s->scale * weight[i * s->keys + j] * (score[i * s->keys + j] - sum);
    }
    product(s->queries, s->size, s->keys, score, k, dq);
    transpose(s->queries, s->keys, score, transposed);
    product(s->keys, s->size, s->queries, transposed, q, dk);
    int64_t kv = b * r->in[1].dim[1] + h / s->shared;
#pragma omp critical
    {
        if (r->din[0].at)
            add_to(r->din[0].at + head * s->queries * s->size, dq, s->queries * s->size);
        if (r->din[1].at)
            add_to(r->din[1].at + kv * s->keys * s->size, dk, s->keys * s->size);
        if (r->din[2].at)
            add_to(r->din[2].at + kv * s->keys * s->value_size, dv, s->keys * s->value_size);
    }
    double *all[] = {weight, score, transposed, dy, v_transposed, dq, dk, dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void attend_back(const Run *r)
{
    Sizes s = sizes_of(r);
#pragma omp parallel for
    for (int64_t head = 0; head < s.batch * s.heads; head++)
        attend_head_back(r, &s, head);
}

const Op naive_attention[] = {{"attend", attend, attend_back}, {0}};
