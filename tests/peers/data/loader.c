/* Reads images as an emitted program does, and says what it took: `make bench-data`.
 *
 *   loader make FOLDER COUNT         writes COUNT photographs of 500 x 375, in 8 folders
 *   loader jpeg FOLDER EPOCHS WORKERS
 *   loader raw FILE EPOCHS WORKERS   u8 images of 224 x 224 x 3, as one array
 *
 * Every sample is shuffled, resized to 224 x 224, flipped, and normalised to f32 as a graph's first
 * op does. */
#define _GNU_SOURCE
#include "runtime/c/data_folder.h"
#include "runtime/c/data_records.h"
#include "runtime/c/data_ring.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

enum { SIDE = 224, BATCH = 32, WIDE = 500, TALL = 375, CLASSES = 8 };
enum { PIXELS = 3 * SIDE * SIDE, RAW = 2048 };

static void fail(const char *what)
{
    fprintf(stderr, "loader: %s\n", what);
    exit(1);
}

/* ---- Photographs ---------------------------------------------------------------------------- */

/* Soft shapes, edges and grain: about as many bytes as a photograph of this size has. */
static void draw(unsigned char *pixel, uint64_t seed)
{
    for (int y = 0; y < TALL; y++)
        for (int x = 0; x < WIDE; x++) {
            const uint64_t grain = gp_random_mix(seed, (uint64_t)(y * WIDE + x));
            const int edge = (x + (int)seed * 7) / 45 % 2 ^ (y + (int)seed * 3) / 60 % 2;
            for (int c = 0; c < 3; c++) {
                const double wave = sin((x + 13.0 * (double)(seed % 97)) * 0.03 * (c + 1)) *
                                    cos(y * 0.04 + c + (double)(seed % 31));
                *pixel++ =
                    (unsigned char)(118 + 75 * wave + 30 * edge + (double)(grain >> 8 * c & 15));
            }
        }
}

static void write_photo(const char *name, const unsigned char *pixel)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    FILE *file = fopen(name, "wb");
    if (!file)
        fail(name);
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, file);
    info.image_width = WIDE;
    info.image_height = TALL;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < TALL; y++) {
        JSAMPROW row = (JSAMPROW)(pixel + 3 * WIDE * y);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    fclose(file);
}

static void make(const char *folder, int count)
{
    static unsigned char pixel[3 * WIDE * TALL];
    char path[1000];
    (void)mkdir(folder, 0777);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%.900s/%d", folder, i % CLASSES);
        (void)mkdir(path, 0777);
        snprintf(path, sizeof path, "%.900s/%d/%05d.jpg", folder, i % CLASSES, i);
        draw(pixel, (uint64_t)i);
        write_photo(path, pixel);
    }
    snprintf(path, sizeof path, "%.900s.raw", folder);
    FILE *file = fopen(path, "wb");
    for (int i = 0; file && i < RAW; i++)
        fwrite(pixel + i, PIXELS, 1, file);
    if (!file || fclose(file) != 0)
        fail(path);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long resident_kib(void)
{
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
        fail("/proc/self/statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void normalise(const unsigned char *from, float *to)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, one_by[] = {4.367f, 4.464f, 4.444f};
    for (int i = 0; i < BATCH; i++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < SIDE * SIDE; k++, from++, to++)
                *to = ((float)*from * (1 / 255.0f) - mean[c]) * one_by[c];
}

static void *need(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, bytes) != 0)
        fail("no memory");
    return memory;
}

static void run(const char *what, const char *path, int epochs, int workers)
{
    const bool raw = strcmp(what, "raw") == 0;
    const gp_data_field field[] = {
        {.name = "x", .dtype = GP_U8, .layout = GP_DATA_CHW, .rank = 3, .dim = {3, SIDE, SIDE}},
        {.name = "y", .dtype = GP_I32, .classes = CLASSES}};
    const gp_data_set set = {.name = "train",
                             .source = raw ? &gp_data_records : &gp_data_folder,
                             .path = path,
                             .field = field,
                             .fields = raw ? 1 : 2,
                             .batch = BATCH,
                             .slot = BATCH,
                             .depth = workers ? 3 : 1,
                             .workers = workers,
                             .shuffle = 1,
                             .epochs = epochs,
                             .flip = 1,
                             .record = raw ? PIXELS : 0,
                             .decoder = raw ? 0 : (int64_t)gp_data_decoder(SIDE, SIDE, 2048, 0)};
    const gp_data_bytes bytes = gp_data_plan(&set);
    const size_t input = sizeof(float) * BATCH * PIXELS, planned = bytes.ring + bytes.work + input;
    float *x = need(input);
    gp_data_start start = {.ring = need(bytes.ring), .work = need(bytes.work), .seed = 1};
    gp_data *data;
    gp_data_slot slot;
    int code = gp_data_open(&data, &set, &start);
    if (code != GP_OK)
        fail(gp_data_error(data));
    const double cpu = cpu_seconds(), wall = wall_seconds();
    long images = 0, first = 0, most = 0;
    while ((code = gp_data_next(data, &slot)) == GP_OK) {
        normalise(slot.at, x);
        images += BATCH;
        const int64_t epoch = slot.epoch;
        gp_data_done(data, &slot);
        const long now = images % 512 ? 0 : resident_kib();
        first = epoch == 0 && now ? now : first;
        most = now > most ? now : most;
    }
    if (code != GP_DATA_END)
        fail(gp_data_error(data));
    const double took = cpu_seconds() - cpu, waited = wall_seconds() - wall;
    gp_data_close(data);
    printf("%-4s gplan, workers %d  %8.0f images/CPU-s %8.0f images/s  resident %6.1f MiB, "
           "planned %6.1f, grew by %ld KiB in %d epochs\n",
           what, workers, (double)images / took, (double)images / waited, (double)most / 1024,
           (double)planned / 1048576, most - first, epochs);
    free(x);
    free(start.ring);
    free(start.work);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        make(argv[2], atoi(argv[3]));
    else if (argc == 5)
        run(argv[1], argv[2], atoi(argv[3]), atoi(argv[4]));
    else
        fail("see the top of loader.c");
    return 0;
}
