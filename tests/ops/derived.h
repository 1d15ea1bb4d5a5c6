/* A case with its gradients: the loss is a weighted sum of all that the call gives. */
#ifndef TESTS_DERIVED_H
#define TESTS_DERIVED_H

#include "tests/ops/cases.h"

typedef struct {
    Built built;
    Use loss, *gradient; /* gradient: by value */
} Derived;

/* False where the case has nothing to derive; *wrong says why it failed, where it did. The caller
 * frees built.message. */
bool case_derive(Arena *arena, const OpCase *row, Derived *d, const char **wrong);
/* A case with its gradients, or as it is where it has none. The caller frees the message. */
Built case_with_gradients(Arena *arena, const OpCase *row);

#endif
