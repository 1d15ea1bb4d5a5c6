/* A plan or a graph for graphviz: what its boxes and arrows are. boxes.c draws them.
 *
 * Requires: a plan (emit_dot) or a graph (emit_graph). Parameters are no boxes: what reads them
 * says how many bytes they are, or the picture would be all parameters.
 */
#include "codegen/dot.h"

#include <string.h>

static bool is_weight(const Graph *g, Id value)
{
    uint8_t kind = g->value.at[value].kind;
    return kind == VALUE_PARAM || kind == VALUE_CONST || kind == VALUE_STATE ||
           kind == VALUE_GRADIENT;
}

static void add_link(Drawing *d, Id from, Id to, uint64_t bytes)
{
    if (from != NONE && from != to)
        ARRAY_PUSH(d->arena, &d->link, (Link){from, to, bytes});
}

static const char *shape_of(const Drawing *d, Id value)
{
    const Value *v = &d->g->value.at[value];
    return shape_text(d->arena, (Dtype)v->dtype, v->rank, v->dim);
}

/* An input or output as a box of its own, in the program that has it. */
static Id add_end(Drawing *d, ItemKind kind, Id value, const char *name, int program)
{
    uint64_t bytes = value_bytes(&d->g->value.at[value]);
    ARRAY_PUSH(d->arena, &d->item,
               (Item){.title = name,
                      .name = "",
                      .shape = shape_of(d, value),
                      .where = size_text(d->arena, bytes),
                      .tip = name,
                      .first = (Id)d->item.count,
                      .bytes = bytes,
                      .kind = (uint8_t)kind,
                      .program = (uint8_t)program});
    return (Id)d->item.count - 1;
}

/* By program and value: the box of an input. */
static Id input_of(Drawing *d, Id *box, int program, Id value)
{
    Id *found = &box[(size_t)program * d->g->value.count + value];
    if (*found == NONE)
        *found = add_end(d, ITEM_INPUT, value, d->g->value.at[value].name, program);
    return *found;
}

static Id *input_table(const Drawing *d)
{
    Id *box = ARENA_ARRAY(d->arena, Id, PROGRAMS * d->g->value.count + 1);
    memset(box, 0xff, PROGRAMS * d->g->value.count * sizeof *box);
    return box;
}

/* ---- The steps of a plan -------------------------------------------------------------------- */

static Item step_item(const Picture *p, uint32_t time)
{
    const Plan *plan = p->plan;
    const Occurrence *o = p->step[time].occurrence;
    const Cluster *c = &plan->clusters->at[o->cluster];
    const Node *node = p->step[time].node;
    Item item = {.title = step_ops(p, time),
                 .name = node->name,
                 .shape = "",
                 .where = "",
                 .scope = node->scope,
                 .first = p->step[time].first,
                 .phase = node->phase,
                 .program = p->step[time].program,
                 .peak = time == p->peak_time};
    for (Id k = 0; k < c->results; k++) {
        Id id = plan->arg[o->arg + c->operands + k];
        const Buffer *b = &plan->buffer[id], *root = &plan->buffer[b->root];
        item.bytes += b->bytes;
        item.live |= b->kind > BUFFER_DATA && root->space == SPACE_ARENA &&
                     p->life[id].birth <= p->peak_time && p->life[id].death > p->peak_time;
        if (k == 0) {
            item.shape = buffer_shape(p, id);
            item.where = root->space != SPACE_ARENA
                             ? "the caller's memory"
                             : arena_printf(p->arena, "%s at %s", size_text(p->arena, b->bytes),
                                            offset_text(p->arena, b->offset));
        }
    }
    item.tip =
        arena_printf(p->arena, "step %u%s", time,
                     node->span.line ? arena_printf(p->arena, ", line %u", node->span.line) : "");
    return item;
}

/* Who made what is in the buffer: the last that wrote it before. */
static void link_step(Drawing *d, const Picture *p, uint32_t time, Id *box, uint32_t *writer)
{
    const Plan *plan = p->plan;
    const Occurrence *o = p->step[time].occurrence;
    const Cluster *c = &plan->clusters->at[o->cluster];
    for (Id k = 0; k < c->operands; k++) {
        Id id = plan->arg[o->arg + k], value = plan->buffer[id].value;
        if (writer[id] != NONE)
            add_link(d, writer[id], time, plan->buffer[id].bytes);
        else if (is_weight(d->g, value_first(d->g, value)))
            d->item.at[time].params += plan->buffer[id].bytes;
        else
            add_link(d, input_of(d, box, p->step[time].program, value), time,
                     plan->buffer[id].bytes);
    }
    for (Id k = c->operands; k < c->operands + c->results; k++)
        writer[plan->arg[o->arg + k]] = time;
}

Text emit_dot(const Plan *plan, const EmitOptions *options)
{
    Picture *p = picture_make(plan, options);
    Drawing d = {
        .g = plan->graph, .arena = p->arena, .plan = plan, .options = options, .peak = p->peak};
    Id *box = input_table(&d);
    uint32_t *writer = ARENA_ARRAY(p->arena, uint32_t, plan->buffers + 1);
    memset(writer, 0xff, plan->buffers * sizeof *writer);
    for (uint32_t time = 0; time < plan->end; time++)
        ARRAY_PUSH(p->arena, &d.item, step_item(p, time));
    for (uint32_t time = 0; time < plan->end; time++)
        link_step(&d, p, time, box, writer);
    for (size_t i = 0; i < d.g->output.count; i++) {
        const Buffer *b = &plan->buffer[plan->output[i]];
        uint32_t time = writer[plan->output[i]];
        add_link(&d, time,
                 add_end(&d, ITEM_OUTPUT, b->value, d.g->output.at[i].name, p->step[time].program),
                 b->bytes);
    }
    return drawing_write(&d);
}

/* ---- The nodes of a graph ------------------------------------------------------------------- */

static Item node_item(const Drawing *d, Id id)
{
    const Node *node = &d->g->node.at[id];
    Item item = {.title = node->op->name,
                 .name = node->name,
                 .shape = shape_of(d, node->value),
                 .scope = node->scope,
                 .first = id,
                 .phase = node->phase,
                 .program = node->program};
    for (Id i = 0; i < node->values; i++)
        item.bytes += value_bytes(&d->g->value.at[node_value(node, i)]);
    item.where = size_text(d->arena, item.bytes);
    item.tip = node->span.line ? arena_printf(d->arena, "line %u", node->span.line) : node->name;
    return item;
}

Text emit_graph(const Graph *g, const EmitOptions *options)
{
    Drawing d = {.g = g, .arena = g->arena, .options = options};
    Id *box = input_table(&d);
    for (Id i = 0; i < g->node.count; i++)
        ARRAY_PUSH(g->arena, &d.item, node_item(&d, i));
    for (Id i = 0; i < g->node.count; i++) {
        const Node *node = &g->node.at[i];
        for (Id u = 0; u < node->uses; u++) {
            Id value = node_use(g, node, u).value;
            if (value == NONE || g->value.at[value].kind == VALUE_LITERAL)
                continue;
            uint64_t bytes = value_bytes(&g->value.at[value]);
            if (g->value.at[value].node != NONE)
                add_link(&d, g->value.at[value].node, i, bytes);
            else if (is_weight(g, value))
                d.item.at[i].params += bytes;
            else
                add_link(&d, input_of(&d, box, node->program, value), i, bytes);
        }
    }
    for (size_t i = 0; i < g->output.count; i++) {
        Id value = g->output.at[i].use.value, node = g->value.at[value].node;
        if (node != NONE)
            add_link(
                &d, node,
                add_end(&d, ITEM_OUTPUT, value, g->output.at[i].name, g->node.at[node].program),
                value_bytes(&g->value.at[value]));
    }
    return drawing_write(&d);
}
