/* Safetensors files: what the header says, checked, and where the bytes of each tensor are.
 *
 * The format: 8 bytes, the length of the header, lowest first; the header, a JSON object with an
 * entry for each tensor; the tensors, which leave no byte out and share none. */
#ifndef GPLAN_SAFETENSORS_H
#define GPLAN_SAFETENSORS_H

#include "frontend/base/names.h"
#include "frontend/base/text.h"
#include "frontend/frontend.h"

typedef struct {
    const char *name;
    const char *dtype_text; /* as the file has it: F32 */
    Dtype dtype;            /* DTYPES: one that gplan does not know */
    int rank;               /* may be above MAX_RANK: dim has the first of them */
    int64_t dim[MAX_RANK];
    const char *data;
    uint64_t bytes;
} StoredTensor;

typedef struct {
    StoredTensor *tensor; /* in the order of the header */
    size_t count;
    NameTable *names; /* of tensors: their place */
} Safetensors;

/* The file is in memory, and stays there. NULL where something is wrong with it: *fault says what.
 */
const Safetensors *safetensors_read(Arena *arena, Text file, const char **fault);
const StoredTensor *safetensors_find(const Safetensors *file, const char *name); /* or NULL */
char *stored_text(Arena *arena, const StoredTensor *tensor);                     /* F32[3, 4] */

/* The header of a file with these tensors in this order, with its length before it. */
Text safetensors_header(Arena *arena, const Value *const *value, size_t count);
/* Whether a file may be overwritten: it does not exist, or its header begins with this mark. Others
 * hold trained parameters, which are not to be lost. */
bool safetensors_may_replace(const char *path, const char *mark);

#endif
