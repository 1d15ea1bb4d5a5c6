/* `gplan pack` as its user meets it: exit status, messages, files. */
#include "frontend/command/options.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gplan-pack-XXXXXX";
static char problem[64], output[64];

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static char *read_text(const char *path)
{
    static char text[8192];
    FILE *in = fopen(path, "rb");
    if (!in)
        return NULL;
    text[fread(text, 1, sizeof text - 1, in)] = 0;
    fclose(in);
    return text;
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(problem, sizeof problem, "%s/in.csv", folder);
    snprintf(output, sizeof output, "%s/out.csv", folder);
    write_text(problem, "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\n");
    cr_redirect_stdout();
    cr_redirect_stderr();
}

static void teardown(void)
{
    unlink(problem);
    unlink(output);
    cr_expect_eq(rmdir(folder), 0, "something was left behind");
}

TestSuite(pack_main, .init = setup, .fini = teardown);

/* The status; texts on the two streams. */
static char *said, *complained;
static int run(const char *a, const char *b, const char *c, const char *d)
{
    const char *word[] = {"gplan", "pack", a, b, c, d, NULL};
    char *argument[7];
    int count = 0;
    for (; word[count]; count++)
        argument[count] = strdup(word[count]);
    argument[count] = NULL;
    int status = command_main(count, argument);
    fflush(stdout);
    fflush(stderr);
    static char out[8192], err[8192];
    FILE *from = cr_get_redirected_stdout();
    out[fread(out, 1, sizeof out - 1, from)] = 0;
    from = cr_get_redirected_stderr();
    err[fread(err, 1, sizeof err - 1, from)] = 0;
    said = out;
    complained = err;
    for (int i = 0; i < count; i++)
        free(argument[i]);
    return status;
}

Test(pack_main, writes_offsets_and_reports)
{
    cr_assert_eq(run(problem, "-o", output, NULL), 0);
    cr_assert_not_null(strstr(said, "height       8\nlower bound  8\ngap          0.000%"));
    cr_assert_str_eq(read_text(output),
                     "id,lower,upper,size,offset\na,0,3,4,4\nb,3,9,4,4\nc,0,9,4,0\n");
}

Test(pack_main, quiet_says_nothing)
{
    cr_assert_eq(run("--quiet", problem, NULL, NULL), 0);
    cr_assert_str_eq(said, "");
}

Test(pack_main, draws_a_picture)
{
    cr_assert_eq(run(problem, "--emit", "svg", "--quiet"), 0);
    cr_assert_eq(strncmp(said, "<svg ", 5), 0);
}

Test(pack_main, a_capacity_out_of_reach_is_proved_and_leaves_no_file)
{
    cr_assert_eq(run("--capacity=7", problem, "-o", output), 1);
    cr_assert_not_null(strstr(complained, "proved"), "%s", complained);
    cr_assert_null(read_text(output));
}

Test(pack_main, a_wrong_row_is_named_and_leaves_the_old_file)
{
    write_text(problem, "id,lower,upper,size\na,0,3,4\nb,9,3,4\n");
    write_text(output, "old");
    cr_assert_eq(run(problem, "-o", output, NULL), 1);
    cr_assert_not_null(strstr(complained, "in.csv:3: error: "), "%s", complained);
    cr_assert_str_eq(read_text(output), "old");
}

Test(pack_main, fixed_buffers_that_collide_are_named)
{
    write_text(problem, "id,lower,upper,size,offset\na,0,3,4,0\nb,0,3,4,2\n");
    cr_assert_eq(run(problem, NULL, NULL, NULL), 1);
    cr_assert_not_null(strstr(complained, "in.csv:3: error: buffer 'b'"), "%s", complained);
}

Test(pack_main, files_that_cannot_be_used_are_named)
{
    cr_assert_eq(run("no/such/file.csv", NULL, NULL, NULL), 1);
    cr_assert_not_null(strstr(complained, "no/such/file.csv"));
    cr_assert_eq(run(problem, "-o", "no/such/out.csv", NULL), 1);
}

Test(pack_main, wrong_usage_is_status_2)
{
    static const char *const wrong[][2] = {
        {"--capacity", "0"},   {"--capacity", "x"}, {"--capacity", "9999999T"}, {"--seconds", "-1"},
        {"--effort", "0"},     {"--emit", "png"},   {"--nonsense", "1"},        {"second.csv", "x"},
        {"--capacity", "12Q"}, {"--seed", ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(run(problem, wrong[i][0], wrong[i][1], NULL), 2, "%s", wrong[i][0]);
    cr_assert_eq(run("--quiet", NULL, NULL, NULL), 2);
    cr_assert_eq(run(problem, "-o", NULL, NULL), 2);
    cr_assert_eq(run("--help", NULL, NULL, NULL), 0);
}
