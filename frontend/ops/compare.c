/* Comparisons, logic and choice, element by element. Truth is bool; comparing with NaN is false,
 * save for not_equal. */
#include "frontend/ops/elementwise.h"

#define EQUALITY OP_ELEMENTWISE | OP_TO_BOOL
#define ORDER OP_ELEMENTWISE | OP_TO_BOOL | OP_NUMBERS
#define LOGIC OP_ELEMENTWISE | OP_TO_BOOL | OP_LOGICAL

const OpRow ops_compare[] = {
    {.name = "equal", .expr = "a == b", .args = TWO, .flags = EQUALITY, .help = "x = y, bool"},
    {.name = "not_equal", .expr = "a != b", .args = TWO, .flags = EQUALITY, .help = "not equal"},
    {.name = "less", .expr = "a < b", .args = TWO, .flags = ORDER, .help = "x < y, bool"},
    {.name = "less_equal", .expr = "a <= b", .args = TWO, .flags = ORDER, .help = "x <= y, bool"},
    {.name = "greater", .expr = "a > b", .args = TWO, .flags = ORDER, .help = "x > y, bool"},
    {.name = "greater_equal",
     .expr = "a >= b",
     .args = TWO,
     .flags = ORDER,
     .help = "x >= y, bool"},
    {.name = "and", .expr = "a && b", .args = TWO, .flags = LOGIC, .help = "both, of bool"},
    {.name = "or", .expr = "a || b", .args = TWO, .flags = LOGIC, .help = "either, of bool"},
    {.name = "not", .expr = "!a", .args = {{.name = "x"}}, .flags = LOGIC, .help = "of bool"},
    {.name = "where",
     .expr = "a ? b : c",
     .dexpr = {NULL, "a ? dy : 0", "a ? 0 : dy"},
     .args = {{.name = "condition", .words = "bool"}, {.name = "x"}, {.name = "y"}},
     .flags = OP_ELEMENTWISE,
     .help = "x where the condition holds, y elsewhere"},
    {0},
};
