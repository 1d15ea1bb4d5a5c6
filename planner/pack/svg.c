/* A packing as a picture: time to the right, bytes upwards, a rectangle for each buffer. */
#include "planner/pack/csv.h"

enum { WIDTH = 1200, HEIGHT = 800, MARGIN = 50 };

static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, out);
        }
    }
}

/* Neighbours in the file get hues far apart: steps of the golden angle. */
static unsigned hue(size_t i)
{
    return (unsigned)(i * 137 % 360);
}

static void write_buffer(FILE *out, const PackBuffer *buffer, uint64_t offset, const double *place,
                         size_t i, const char *id)
{
    fprintf(out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u,55%%,70%%)\" "
            "stroke=\"#333\" stroke-width=\"0.3\"><title>",
            place[0], place[1], place[2], place[3], hue(i));
    if (id)
        write_escaped(out, id);
    fprintf(out, ": [%lld, %lld), %llu bytes at %llu</title></rect>\n", (long long)buffer->lower,
            (long long)buffer->upper, (unsigned long long)buffer->size, (unsigned long long)offset);
}

void pack_svg_write(FILE *out, const PackProblem *problem, const PackSolution *solution,
                    const char *const *id)
{
    double from = 0, to = 1, height = solution->height ? (double)solution->height : 1;
    for (size_t i = 0; i < problem->count; i++) {
        double lower = (double)problem->buffer[i].lower, upper = (double)problem->buffer[i].upper;
        from = i && from < lower ? from : lower;
        to = i && to > upper ? to : upper;
    }
    double x = WIDTH / (to - from), y = HEIGHT / height;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"14\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN);
    for (size_t i = 0; i < problem->count; i++) {
        const PackBuffer *buffer = &problem->buffer[i];
        if (!buffer->size)
            continue;
        double top = (double)solution->offset[i] + (double)buffer->size;
        double place[] = {MARGIN + ((double)buffer->lower - from) * x, MARGIN + HEIGHT - top * y,
                          ((double)buffer->upper - (double)buffer->lower) * x,
                          (double)buffer->size * y};
        write_buffer(out, buffer, solution->offset[i], place, i, id ? id[i] : NULL);
    }
    fprintf(out,
            "<text x=\"%d\" y=\"%d\">%llu bytes, lower bound %llu, %zu buffers</text>\n</svg>\n",
            MARGIN, MARGIN - 15, (unsigned long long)solution->height,
            (unsigned long long)solution->bound, problem->count);
}
