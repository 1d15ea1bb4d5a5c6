/* `gplan pack`: a problem as CSV in, offsets out. */
#include "frontend/base/clock.h"
#include "frontend/base/size.h"
#include "frontend/command/options.h"
#include "frontend/command/output.h"
#include "planner/pack/csv.h"

#include <errno.h>
#include <string.h>

static bool complain(const char *path)
{
    if (errno == ENOMEM)
        out_of_memory(0);
    fprintf(stderr, "gplan pack: %s: error: %s\n", path, strerror(errno));
    return false;
}

static char *read_all(Arena *arena, FILE *in, size_t *length)
{
    ARRAY(char) text = {0};
    char part[1 << 14];
    for (size_t got; (got = fread(part, 1, sizeof part, in)) > 0;) {
        while (text.capacity < text.count + got)
            text.at = arena_grow(arena, text.at, text.capacity, &text.capacity, 1);
        memcpy(text.at + text.count, part, got);
        text.count += got;
    }
    *length = text.count;
    return ferror(in) ? NULL : text.at ? text.at : arena_copy(arena, "", 0);
}

static PackCsv *read_problem(Arena *arena, const char *path)
{
    bool standard = !strcmp(path, "-");
    FILE *in = standard ? stdin : fopen(path, "rb");
    size_t length = 0;
    char *text = in ? read_all(arena, in, &length) : NULL;
    if (!text) {
        complain(path);
        if (in && !standard)
            fclose(in);
        return NULL;
    }
    if (!standard)
        fclose(in);
    PackCsvError error = {0};
    PackCsv *csv = pack_csv_read(arena, text, length, &error);
    if (!csv)
        fprintf(stderr, "%s:%zu: error: %s\n", standard ? "<stdin>" : path,
                error.line ? error.line : 1, error.message);
    return csv;
}

typedef struct {
    const PackCsv *csv;
    const PackSolution *solution;
    bool svg;
} Written;

static void emit(FILE *out, const void *what)
{
    const Written *output = what;
    if (output->svg)
        pack_svg_write(out, &output->csv->problem, output->solution, output->csv->id);
    else
        pack_csv_write(out, output->csv, output->solution->offset);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && !strcmp(text + length - tail, suffix);
}

static void report(FILE *out, const PackSolution *solution, double seconds)
{
    double gap = solution->bound
                     ? 100 * (double)(solution->height - solution->bound) / (double)solution->bound
                     : 0;
    fprintf(out, "height       %llu\n", (unsigned long long)solution->height);
    fprintf(out, "lower bound  %llu\n", (unsigned long long)solution->bound);
    fprintf(out, "gap          %.3f%%%s\n", gap, solution->optimal ? " (optimal)" : "");
    fprintf(out, "time         %.3f s\n", seconds);
    fprintf(out, "stopped      %s, effort %llu\n", pack_stop_name(solution->stop),
            (unsigned long long)solution->effort);
}

/* Why there is nothing to write; the exit status. */
static int refuse(const Options *options, const PackCsv *csv, PackStatus status,
                  const PackSolution *solution)
{
    if (status == PACK_INVALID) {
        size_t line = solution->bad < csv->problem.count ? csv->line[solution->bad] : 1;
        fprintf(stderr, "%s:%zu: error: buffer '%s': %s\n", options->input.at[0], line,
                solution->bad < csv->problem.count ? csv->id[solution->bad] : "", solution->why);
    } else if (status == PACK_INFEASIBLE) {
        fprintf(stderr,
                "%s: error: capacity %llu cannot be reached, this is proved: no packing is "
                "smaller than %llu (found: %llu)\n",
                options->input.at[0], (unsigned long long)options->capacity,
                (unsigned long long)solution->bound, (unsigned long long)solution->height);
    } else {
        fprintf(stderr,
                "%s: error: capacity %llu was not reached before the end (%s), which proves "
                "nothing: lower bound %llu, found %llu\n",
                options->input.at[0], (unsigned long long)options->capacity,
                pack_stop_name(solution->stop), (unsigned long long)solution->bound,
                (unsigned long long)solution->height);
    }
    return 1;
}

int pack_main(Arena *arena, const Options *o)
{
    if (o->emit && strcmp(o->emit, "csv") != 0 && strcmp(o->emit, "svg") != 0) {
        fprintf(stderr, "gplan pack: --emit '%s': expected one of: csv svg\n", o->emit);
        return 2;
    }
    PackOptions how = {.effort = o->effort, .seconds = o->seconds, .seed = o->seed};
    PackCsv *csv = read_problem(arena, o->input.at[0]);
    if (!csv)
        return 1;
    csv->problem.capacity = o->capacity;
    PackSolution solution = {.offset = ARENA_ARRAY(arena, uint64_t, csv->problem.count)};
    double begin = clock_seconds();
    PackStatus status = pack_solve(&csv->problem, &how, &solution);
    double seconds = clock_seconds() - begin;
    if (status != PACK_OK)
        return refuse(o, csv, status, &solution);
    PackVerdict verdict = pack_check(&csv->problem, &solution);
    if (verdict.fault) {
        fprintf(stderr, "gplan pack: internal error: %s; please report it\n",
                pack_fault_name(verdict.fault));
        return 3;
    }
    const char *path = o->output ? o->output : o->emit ? "-" : NULL;
    bool standard = path && !strcmp(path, "-");
    Written output = {csv, &solution, false};
    output.svg = o->emit ? !strcmp(o->emit, "svg") : path && has_suffix(path, ".svg");
    if (standard)
        emit(stdout, &output);
    else if (path && !file_write(path, emit, &output))
        return complain(path) ? 0 : 1;
    if (!o->quiet)
        report(standard ? stderr : stdout, &solution, seconds);
    if (fflush(stdout) || ferror(stdout))
        return complain("standard output") ? 0 : 1;
    return 0;
}
