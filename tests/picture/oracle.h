/* Runs a plan on memory in which every byte knows what it holds: the slow, plain truth about a
 * plan, sharing nothing with plan_check. */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include "codegen/codegen.h"

/* NULL where every step of every program finds what it reads and harms nothing. */
const char *oracle_run(const Plan *plan, uint32_t align);

#endif
