#include "tests/pack/pack_judge.h"

const char *judge_pairs(const PackProblem *problem, const PackSolution *solution)
{
    for (size_t i = 0; i < problem->count; i++) {
        const PackBuffer *a = &problem->buffer[i];
        if (a->align > 1 && solution->offset[i] % a->align)
            return "not aligned";
        if (a->fixed >= 0 && solution->offset[i] != (uint64_t)a->fixed)
            return "a fixed buffer moved";
        if (a->size && solution->offset[i] + a->size > solution->height)
            return "a buffer ends above the height";
        for (size_t j = 0; j < i; j++) {
            const PackBuffer *b = &problem->buffer[j];
            bool in_time = a->lower < b->upper && b->lower < a->upper && a->size && b->size;
            if (in_time && solution->offset[i] < solution->offset[j] + b->size &&
                solution->offset[j] < solution->offset[i] + a->size)
                return "two buffers overlap";
        }
    }
    return NULL;
}

const char *judge(const PackProblem *problem, PackStatus status, const PackSolution *solution)
{
    enum { FEW = 3000 };
    PackProblem open = *problem;
    if (status != PACK_OK)
        open.capacity = 0;
    PackVerdict verdict = pack_check(&open, solution);
    if (verdict.fault)
        return pack_fault_name(verdict.fault);
    const char *fault = problem->count <= FEW ? judge_pairs(problem, solution) : NULL;
    if (fault)
        return fault;
    if (solution->bound < pack_bound(problem))
        return "the bound fell";
    if (solution->optimal != (solution->height == solution->bound))
        return "optimal means that the height is the bound";
    uint64_t capacity = problem->capacity;
    if ((status == PACK_INFEASIBLE) != (capacity && solution->bound > capacity))
        return "infeasible means that the bound is above the capacity";
    if ((status == PACK_OK) != (!capacity || solution->height <= capacity))
        return "the status and the capacity differ";
    return NULL;
}
