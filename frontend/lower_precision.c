/* precision "head.*" = f32: layers that stay wide whatever precision the others have.
 *
 * Read from the tree before anything is lowered, for they stand anywhere in the model or in its
 * train statement, which comes last and which inference leaves out.
 */
#include "frontend/lower.h"

#include <string.h>

static void collect(Lower *l, const Stmts *body)
{
    for (size_t i = 0; i < body->count; i++) {
        const Stmt *stmt = body->at[i];
        if (stmt->kind == STMT_TRAIN)
            collect(l, &stmt->body);
        if (stmt->kind != STMT_PRECISION)
            continue;
        const Expr *value = stmt->value;
        if (value->kind == EXPR_NAME && strcmp(value->text, dtype_name(F32)) == 0)
            ARRAY_PUSH(l->arena, &l->g->wide,
                       (WideLayers){stmt->name.text, stmt->name.span, false});
        else
            diag_error(l->diag, value->span, "the precision of single layers can only be f32");
    }
}

void lower_precision(Lower *l)
{
    l->g->wide.count = 0;
    collect(l, &l->ast->body);
}

void check_precision(Lower *l)
{
    for (size_t i = 0; i < l->g->wide.count && !diag_errors(l->diag); i++)
        if (!l->g->wide.at[i].met) {
            diag_error(l->diag, l->g->wide.at[i].span, "no layer matches \"%s\"",
                       l->g->wide.at[i].pattern);
            diag_hint(l->diag, "a layer is named as its parameters are: fc1.* has fc1.w");
        }
}
