#include "remat_generate.h"

uint64_t generate_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

Generator generate_begin(Arena *arena)
{
    return (Generator){.arena = arena};
}

RematId generate_source(Generator *g)
{
    ARRAY_PUSH(g->arena, &g->value,
               (RematValue){0, REMAT_NONE, REMAT_NONE, REMAT_NONE, REMAT_PINNED});
    return (RematId)(g->value.count - 1);
}

RematId generate_node(Generator *g, double cost, int64_t size, const RematId *read, size_t reads)
{
    RematNode node = {.cost = cost, .read = (RematId)g->read.count, .reads = (RematId)reads};
    node.value = (RematId)g->value.count;
    node.values = 1;
    for (size_t i = 0; i < reads; i++)
        ARRAY_PUSH(g->arena, &g->read, read[i]);
    RematValue value = {size, (RematId)g->node.count, REMAT_NONE, REMAT_NONE, 0};
    ARRAY_PUSH(g->arena, &g->value, value);
    ARRAY_PUSH(g->arena, &g->node, node);
    return node.value;
}

RematProblem generate_end(Generator *g)
{
    return (RematProblem){
        .node = g->node.at,
        .value = g->value.at,
        .read = g->read.at,
        .in_place = g->in_place.at,
        .nodes = (RematId)g->node.count,
        .values = (RematId)g->value.count,
        .reads = (RematId)g->read.count,
        .in_places = (RematId)g->in_place.count,
    };
}

RematProblem generate_random(Arena *arena, RematId nodes, RematId reach, uint64_t seed)
{
    Generator g = generate_begin(arena);
    for (RematId x = 0; x < nodes; x++) {
        RematId read[4];
        size_t reads = 0, wanted = x ? 1 + generate_bits(&seed) % 3 : 0;
        for (size_t i = 0; i < wanted; i++) {
            uint64_t back = 1 + generate_bits(&seed) % (x < reach ? x : reach);
            RematId value = x - (RematId)back;
            bool twice = false;
            for (size_t j = 0; j < reads; j++)
                twice |= read[j] == value;
            if (!twice)
                read[reads++] = value;
        }
        double cost = (double)(1 + generate_bits(&seed) % 20);
        generate_node(&g, cost, (int64_t)(1 + generate_bits(&seed) % 9), read, reads);
    }
    return generate_end(&g);
}

RematProblem generate_reversal(Arena *arena, int steps)
{
    Generator g = generate_begin(arena);
    RematId *state = ARENA_ARRAY(arena, RematId, (size_t)steps);
    for (int i = 0; i < steps; i++) {
        state[i] = generate_node(&g, i ? 1 : 0, 1, i ? &state[i - 1] : NULL, i > 0);
        if (i)
            ARRAY_PUSH(arena, &g.in_place,
                       (RematInPlace){(RematId)g.node.count - 1, state[i - 1], state[i]});
    }
    g.node.at[0].flags = REMAT_ONCE;
    RematId last = REMAT_NONE;
    for (int i = steps; i >= 1; i--) {
        RematId read[2] = {state[i - 1], last};
        last = generate_node(&g, 0, 0, read, last == REMAT_NONE ? 1 : 2);
        g.node.at[g.node.count - 1].flags = REMAT_ONCE;
    }
    return generate_end(&g);
}

/* Forward nodes of a layer, each with the forward values it reads (-1: the layer before). */
static const struct {
    double cost;
    int64_t size;
    int read[2];
    bool weight; /* has a gradient of its own, and an update */
} layer_node[] = {
    {1, 4, {-1, -2}, false}, /* norm */
    {36, 12, {0, -2}, true}, /* query, key, value */
    {20, 4, {1, -2}, false}, /* attention */
    {12, 4, {2, -2}, true},  /* projection */
    {1, 4, {3, -1}, false},  /* residual */
    {1, 4, {4, -2}, false},  /* norm */
    {48, 16, {5, -2}, true}, /* widen */
    {3, 16, {6, -2}, false}, /* gelu */
    {48, 4, {7, -2}, true},  /* narrow */
    {1, 4, {8, 4}, false},   /* residual */
};
enum { LAYER = sizeof layer_node / sizeof *layer_node };

static RematId forward_value(const RematId *layer, RematId before, int read)
{
    return read == -1 ? before : layer[read];
}

/* The gradient of each node reads the gradient of its result and its inputs; those of values
 * with two readers are added. */
static RematId backward_layer(Generator *g, const RematId *layer, RematId before, RematId gradient)
{
    RematId at[LAYER + 1]; /* gradients by forward value; [LAYER] of the layer before */
    for (int i = 0; i <= LAYER; i++)
        at[i] = REMAT_NONE;
    at[LAYER - 1] = gradient;
    for (int i = LAYER - 1; i >= 0; i--) {
        RematId input = forward_value(layer, before, layer_node[i].read[0]);
        int64_t bytes = g->value.at[input].size;
        RematId read[3] = {at[i], input};
        RematId made = generate_node(g, layer_node[i].cost, bytes, read, 2);
        if (layer_node[i].weight) {
            RematId weight = generate_node(g, layer_node[i].cost, 3, read, 2);
            generate_node(g, 0.1, 0, &weight, 1);
            g->node.at[g->node.count - 1].flags = REMAT_ONCE;
        }
        for (int j = 0; j < 2; j++) {
            int to = layer_node[i].read[j];
            if (to == -2)
                continue;
            RematId *slot = &at[to == -1 ? LAYER : to];
            RematId both[2] = {made, *slot};
            *slot = *slot == REMAT_NONE ? made : generate_node(g, 1, bytes, both, 2);
        }
    }
    return at[LAYER];
}

RematProblem generate_decoder(Arena *arena, RematId nodes)
{
    Generator g = generate_begin(arena);
    RematId layers = (nodes + 29) / 30;
    RematId(*layer)[LAYER] = (RematId(*)[LAYER])ARENA_ARRAY(arena, RematId, (size_t)layers * LAYER);
    RematId embed = generate_node(&g, 1, 4, NULL, 0), before = embed;
    for (RematId i = 0; i < layers; i++) {
        for (int j = 0; j < LAYER; j++) {
            RematId read[2];
            size_t reads = 0;
            for (int k = 0; k < 2; k++)
                if (layer_node[j].read[k] != -2)
                    read[reads++] = forward_value(layer[i], before, layer_node[j].read[k]);
            layer[i][j] = generate_node(&g, layer_node[j].cost, layer_node[j].size, read, reads);
        }
        before = layer[i][LAYER - 1];
    }
    RematId gradient = generate_node(&g, 30, 4, &before, 1);
    for (RematId i = layers; i-- > 0;)
        gradient = backward_layer(&g, layer[i], i ? layer[i - 1][LAYER - 1] : embed, gradient);
    return generate_end(&g);
}
