/* Branches of kernels that no call takes: what is left of the text. */
#include "codegen/ways.h"

#include <criterion/criterion.h>
#include <string.h>

static Arena *arena;

static void begin(void)
{
    arena = arena_new();
}

static void end(void)
{
    arena_free(arena);
}

TestSuite(ways, .init = begin, .fini = end);

/* A statement within a function, without the branches; a is taken, b is passed, c may be either. */
static const char *cut(const char *statement)
{
    Ways ways = {.arena = arena, .taken = names_new(arena), .said = names_new(arena)};
    *names_at(ways.taken, "a") = GP_TAKEN;
    *names_at(ways.taken, "b") = GP_PASSED;
    *names_at(ways.taken, "c") = GP_TAKEN | GP_PASSED;
    Unit unit = {.kind = UNIT_CODE,
                 .text = arena_printf(arena, "void f(void)\n{\n    %s\n}", statement)};
    ways_cut(&ways, &unit);
    Out o = out_new(arena); /* one blank for any number of them */
    const char *at = unit.text + strlen("void f(void)\n{");
    for (bool blank = false; *at; at++)
        if (*at == ' ' || *at == '\n') {
            blank = o.length > 0;
        } else {
            out(&o, "%s%c", blank ? " " : "", *at);
            blank = false;
        }
    return o.at;
}

static void expect(const char *statement, const char *left)
{
    const char *is = cut(statement);
    left = arena_printf(arena, "%s }", left);
    cr_expect_str_eq(is, left, "%s becomes\n%s, not\n%s", statement, is, left);
}

Test(ways, a_branch_that_some_take_stays)
{
    expect("if (GP_WAY(c, x > 0))\n        p();\n    else\n        q();",
           "if (x > 0) p(); else q();");
}

Test(ways, one_side_is_left_behind_a_check)
{
    expect("if (GP_WAY(a, x))\n        p();\n    else\n        q();", "GP_PLANNED(x); p();");
    expect("if (GP_WAY(b, x))\n        p();\n    else\n        q();", "GP_PLANNED(!(x)); q();");
    expect("if (GP_WAY(b, x))\n        p();\n    q();", "GP_PLANNED(!(x)); q();");
}

Test(ways, the_else_before_a_branch_stays)
{
    expect("if (y)\n        p();\n    else if (GP_WAY(a, x))\n        q();\n    else\n        r();",
           "if (y) p(); else { GP_PLANNED(x); q(); }");
    expect("if (y)\n        p();\n    else if (GP_WAY(b, x))\n        q();\n    else\n        r();",
           "if (y) p(); else { GP_PLANNED(!(x)); r(); }");
    expect("if (y)\n        p();\n    else if (GP_WAY(b, x))\n        q();\n    r();",
           "if (y) p(); else { GP_PLANNED(!(x)); } r();");
    expect("if (y) {\n        p();\n    } else if (GP_WAY(a, x)) {\n        q();\n    }",
           "if (y) { p(); } else { GP_PLANNED(x); q(); }");
}

Test(ways, branches_may_follow_one_another)
{
    expect("if (GP_WAY(c, x))\n        p();\n    else if (GP_WAY(b, y))\n        q();\n"
           "    else if (GP_WAY(a, z))\n        r();\n    else\n        s();",
           "if (x) p(); else { GP_PLANNED(!(y)); GP_PLANNED(z); r(); }");
    expect("if (GP_WAY(b, x))\n        p();\n    else if (GP_WAY(c, y))\n        q();\n"
           "    else\n        s();",
           "GP_PLANNED(!(x)); if (y) q(); else s();");
    expect("if (GP_WAY(a, x)) {\n        if (GP_WAY(b, y))\n            p();\n        q();\n    }",
           "GP_PLANNED(x); GP_PLANNED(!(y)); q();");
}

Test(ways, a_branch_may_be_the_body_of_a_loop)
{
    expect("for (;;)\n        if (GP_WAY(a, x))\n            p();\n        else\n            q();",
           "for (;;) { GP_PLANNED(x); p(); }");
    expect("if (y)\n        if (GP_WAY(c, x))\n            p();\n    q();",
           "if (y) if (x) p(); q();");
}
