/* Both text formats, and what is said about bad ones. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

static bool read_text(const char *text, Arena *arena, RematProblem *problem, char **message)
{
    size_t size;
    FILE *errors = open_memstream(message, &size);
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    bool ok = remat_read(file, "in", arena, problem, errors);
    fclose(file);
    fclose(errors);
    return ok;
}

static void expect_error(const char *text, const char *wanted)
{
    Arena *arena = arena_new();
    RematProblem problem;
    char *message;
    cr_expect_not(read_text(text, arena, &problem, &message), "accepted: %s", text);
    cr_expect_str_eq(message, wanted);
    free(message);
    arena_free(arena);
}

Test(remat_text, reads_numbers)
{
    Arena *arena = arena_new();
    RematProblem problem;
    char *message;
    cr_assert(read_text("3 3\n10 1.5\n20 0\n5 2e3\n0 1\n0 2 1 2\n", arena, &problem, &message));
    cr_expect_eq(problem.nodes, 3u);
    cr_expect_eq(problem.node[2].reads, 2u);
    cr_expect_eq(problem.value[1].size, 20);
    cr_expect_float_eq(problem.node[2].cost, 2000, 0);
    free(message);
    arena_free(arena);
}

Test(remat_text, reads_names_in_any_order_of_lines)
{
    Arena *arena = arena_new();
    RematProblem problem;
    char *message;
    cr_assert(read_text("# a chain\nc: b a # both\nnode c size=1 cost=2 work=7 once output\n"
                        "node a size=3 cost=1\nnode b size=2 cost=1\nedge a b\nedge a b\n",
                        arena, &problem, &message),
              "%s", message);
    cr_expect_str_eq(problem.name[0], "a");
    cr_expect_str_eq(problem.name[1], "b");
    cr_expect_str_eq(problem.name[2], "c");
    cr_expect_eq(problem.reads, 3u);
    cr_expect_eq(problem.node[2].workspace, 7);
    cr_expect_eq(problem.node[2].flags, REMAT_ONCE);
    cr_expect_eq(problem.value[2].flags, REMAT_OUTPUT);
    char *written;
    size_t size;
    FILE *out = open_memstream(&written, &size);
    RematSchedule given = remat_baseline(&problem, arena);
    remat_write(out, &problem, &given);
    fclose(out);
    cr_expect_str_eq(written, "a\nb\nc\n");
    free(written);
    free(message);
    arena_free(arena);
}

Test(remat_text, says_what_is_wrong_with_numbers)
{
    expect_error("", "in:1: error: expected the number of nodes, saw the end\n");
    expect_error("2", "in:1: error: expected the number of edges, saw the end\n");
    expect_error("2 1\n4 4\n", "in:3: error: expected a size, saw the end\n");
    expect_error("1 0\n-4 4\n", "in:2: error: a size is negative: -4\n");
    expect_error("1 0\n4 -1\n", "in:2: error: a cost is negative: -1\n");
    expect_error("1 0\n4 nan\n", "in:2: error: expected a cost, saw 'nan'\n");
    expect_error("1 0\n4 1e999\n", "in:2: error: a cost is too large: '1e999'\n");
    expect_error("1 0\n99999999999999999999 1\n",
                 "in:2: error: a size is too large: '99999999999999999999'\n");
    expect_error("2 1\n1 1\n1 1\n0 2\n", "in:4: error: there is no node 2: nodes are 0 to 1\n");
    expect_error("2 1\n1 1\n1 1\n1 0\n",
                 "in:4: error: edge 1 0 goes against the order of the lines, or is a cycle\n");
    expect_error("1 0\n1 1\nx\n", "in:3: error: expected the end after 0 edges, saw 'x'\n");
    expect_error("99999999999 0\n", "in:1: error: the number of nodes is too large: 99999999999\n");
    expect_error("0 0\n", "in:2: error: there are no nodes\n");
}

Test(remat_text, says_what_is_wrong_with_names)
{
    expect_error("node a size=1\n", "in:1: error: node 'a' has no cost=\n");
    expect_error("node a size=1 cost=1\nnode a size=1 cost=1\n",
                 "in:2: error: node 'a' is on line 1 already\n");
    expect_error("node a size=1 cost=1\n\nedge a b\n", "in:3: error: there is no node 'b'\n");
    expect_error("node a size=1 cost=1 fast\n", "in:1: error: expected size=, cost=, work=, once "
                                                "or output, saw 'fast'\n");
    expect_error("node a size=1 cost=1\nnode b size=1 cost=1\nb: a\na: b\n",
                 "in:3: error: 'a' and 'b' are on a cycle\n");
    expect_error("node a size=1 cost=1\na: a\n", "in:2: error: 'a' and 'a' are on a cycle\n");
    expect_error("hello\n", "in:1: error: expected node, edge or 'NAME:', saw 'hello'\n");
    expect_error("node a size=1 cost=1\nedge a\n",
                 "in:2: error: expected the name of a node, saw the end of the line\n");
}
