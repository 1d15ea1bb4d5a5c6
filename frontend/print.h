/* The syntax tree as text that parses to the same tree. */
#ifndef GPLAN_PRINT_H
#define GPLAN_PRINT_H

#include "frontend/ast.h"

void ast_print(const Ast *ast, FILE *to);
bool name_is_plain(const char *name); /* it needs no quotes */

#endif
