/* The subcommand: exit status, what it prints, and a schedule that appears whole or not at all. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/command/options.h"

static char folder[] = "/tmp/remat_test_XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    cr_redirect_stdout();
    cr_redirect_stderr();
}

static void teardown(void)
{
    remove("graph.txt");
    remove("out.txt");
    cr_assert_eq(chdir("/"), 0);
    rmdir(folder);
}

TestSuite(remat_main, .init = setup, .fini = teardown);

static void write_graph(const char *text)
{
    FILE *file = fopen("graph.txt", "w");
    fputs(text, file);
    fclose(file);
}

static int run(const char *arguments)
{
    char program[] = "gplan", name[] = "remat", copy[200], *argv[16] = {program, name};
    int argc = 2;
    strcpy(copy, arguments);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    int status = command_main(argc, argv);
    fflush(stdout);
    fflush(stderr);
    return status;
}

static const char chain[] = "node a size=4 cost=1\nnode b size=4 cost=1\nnode c size=4 cost=1\n"
                            "node d size=1 cost=1\nb: a\nc: b\nd: c a\n";

Test(remat_main, writes_the_schedule_it_found)
{
    write_graph(chain);
    cr_assert_eq(run("graph.txt --budget 9 --effort 20 -o out.txt --quiet"), 0);
    char text[40] = {0};
    FILE *file = fopen("out.txt", "r");
    cr_assert_not_null(file);
    cr_assert_gt(fread(text, 1, sizeof text - 1, file), 0u);
    fclose(file);
    cr_expect_str_eq(text, "a\nb\nc\na\nd\n");
    cr_expect_stdout_eq_str("");
}

Test(remat_main, fails_and_writes_nothing_when_nothing_fits)
{
    write_graph(chain);
    cr_expect_eq(run("graph.txt --budget 8 --effort 20 -o out.txt --quiet"), 1);
    cr_expect_neq(access("out.txt", F_OK), 0);
    cr_expect_stderr_eq_str(
        "gplan remat: no schedule within 8 bytes: one node alone needs 9 bytes\n");
}

Test(remat_main, takes_shares_suffixes_and_min)
{
    write_graph(chain);
    cr_expect_eq(run("graph.txt --budget 75.5% --effort 20 --quiet"), 0);
    cr_expect_eq(run("graph.txt --budget 1.5KiB --effort 20 --quiet"), 0);
    cr_expect_eq(run("graph.txt --budget min --effort 20 --quiet"), 0);
}

Test(remat_main, tells_wrong_usage_from_wrong_input)
{
    write_graph("1 0\n-1 0\n");
    cr_expect_eq(run(""), 2);
    cr_expect_eq(run("graph.txt"), 2);
    cr_expect_eq(run("graph.txt --budget"), 2);
    cr_expect_eq(run("graph.txt --budget 1 --wrong"), 2);
    cr_expect_eq(run("graph.txt --budget 1 --effort x"), 2);
    cr_expect_eq(run("graph.txt other.txt --budget 1"), 2);
    cr_expect_eq(run("graph.txt --budget 1"), 1);
    cr_expect_eq(run("none.txt --budget 1"), 1);
    write_graph("1 0\n1 0\n");
    cr_expect_eq(run("graph.txt --budget 1Q"), 2);
    cr_expect_eq(run("graph.txt --budget -1"), 2);
    cr_expect_eq(run("graph.txt --budget nan"), 2);
}
