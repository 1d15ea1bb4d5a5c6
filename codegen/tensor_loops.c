/* Updates of all parameters, one after the other, are a loop over the table of tensors.
 *
 * Requires: calls and the table. Leaves: runs of calls of one function whose first argument is one
 * tensor of a file after the other, and what stands for their arguments. */
#include "codegen/internal.h"

#include <string.h>

enum { LEAST_CALLS = 8 };

static const Address *address_of(const Emission *e, Id call, Id argument)
{
    return &e->address.at[e->call.at[call].address + argument];
}

static bool lies_there(const ApiTensor *t, const Address *a)
{
    if (a->micro_stride || a->offset != t->offset)
        return false;
    return t->slot == NONE ? a->kind == AT_ARENA : a->kind == AT_EXTERNAL && a->slot == t->slot;
}

/* The tensor that lies there; NONE: none that files hold. */
static Id find_tensor(const Api *api, const Address *a)
{
    for (size_t i = api->saved_begin; i < api->saved_end; i++)
        if (lies_there(&api->tensor[i], a))
            return (Id)i;
    return NONE;
}

/* Tensors first + step * i are the argument of `calls` calls. */
typedef struct {
    Id first, step, calls;
} Walk;

static Walk find_walk(const Emission *e, Id begin, Id end, Id argument)
{
    const Api *api = e->api;
    Walk walk = {.first = find_tensor(api, address_of(e, begin, argument))};
    if (walk.first == NONE || begin + 1 >= end ||
        address_of(e, begin + 1, argument)->kind == AT_NUMBER)
        return walk;
    const Id next = find_tensor(api, address_of(e, begin + 1, argument));
    if (next == NONE || next <= walk.first)
        return walk;
    walk.step = next - walk.first;
    for (size_t at = walk.first; begin + walk.calls < end && at < api->saved_end; at += walk.step) {
        if (!lies_there(&api->tensor[at], address_of(e, begin + walk.calls, argument)))
            break;
        walk.calls++;
    }
    return walk;
}

Repeat tensor_loop_find(const Emission *e, Id begin, Id end)
{
    for (Id i = begin, last; i < end; i = last) {
        const EmitCall *first = &e->call.at[i];
        const uint64_t kind = call_kind(e, first, false);
        for (last = i + 1; last < end && call_kind(e, &e->call.at[last], false) == kind;)
            last++;
        for (Id k = i; k < last; k++)
            if (e->call.at[k].before != NONE)
                last = k > i ? k : i + 1;
        if (last - i < LEAST_CALLS || first->addresses == 0)
            continue;
        const Walk walk = find_walk(e, i, last, 0);
        if (walk.calls >= LEAST_CALLS)
            return (Repeat){i, 1, walk.calls};
    }
    return (Repeat){end, 0, 0};
}

const char *tensor_loop_argument(const Emission *e, Repeat repeat, Id argument)
{
    const Walk walk = find_walk(e, repeat.begin, repeat.begin + repeat.times, argument);
    if (walk.calls < repeat.times)
        return NULL;
    return arena_printf(e->arena, "TENSOR(%s)",
                        even_text(e->arena, walk.first, walk.step, "i", repeat.times));
}
