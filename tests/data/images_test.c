/* Images: resized as by plain loops in double, decoded whatever they are, refused where they are
 * damaged or larger than planned. */
#include "tests/data/sets.h"

#include "runtime/c/data_folder.h"
#include "tests/data/images.h"

#include <stdlib.h>

enum { W = 90, H = 70, OUT = 32 };

/* ---- The resize ----------------------------------------------------------------------------- */

/* Of one output pixel: the mean of a box of pixels, by triangles in both directions. */
static double plain_pixel(const unsigned char *pixel, int width, int height, int c, gp_box box,
                          int w, int h, int ox, int oy)
{
    const double sx = box.width / w, sy = box.height / h, rx = fmax(sx, 1), ry = fmax(sy, 1);
    const double mx = box.x + (ox + 0.5) * sx, my = box.y + (oy + 0.5) * sy;
    double sum = 0, weights = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const double a = fmax(0, 1 - fabs(x + 0.5 - mx) / rx),
                         b = fmax(0, 1 - fabs(y + 0.5 - my) / ry);
            sum += a * b * pixel[4 * (y * width + x) + c];
            weights += a * b;
        }
    return sum / weights;
}

static void resize_is_plain(int width, int height, gp_box box, int w, int h, int layout, int flip)
{
    unsigned char *pixel = malloc((size_t)(4 * width * height)), *to = malloc((size_t)(3 * w * h));
    gp_data_field field = {.layout = layout, .dtype = GP_U8, .rank = 3};
    const int chw = layout == GP_DATA_CHW;
    const size_t room = gp_data_decoder(h, w, width > height ? width : height, 0);
    gp_slab slab = {malloc(room), room, 0};
    gp_image_resize r;
    field.dim[chw ? 0 : 2] = 3;
    field.dim[chw] = h;
    field.dim[chw + 1] = w;
    for (int i = 0; i < 4 * width * height; i++) /* edges, and all levels */
        pixel[i] = (unsigned char)(i / 4 % 11 < 5 ? 255 : gp_random_mix(1, (uint64_t)i));
    cr_assert(gp_image_resize_begin(&r, &slab, width, height, box, &field, to, flip));
    for (int y = 0; y < height; y++)
        gp_image_resize_row(&r, pixel + 4 * width * y);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++) {
                const double want =
                    plain_pixel(pixel, width, height, c, box, w, h, flip ? w - 1 - x : x, y);
                const int got = to[chw ? (c * h + y) * w + x : (y * w + x) * 3 + c];
                cr_assert(fabs(got - want) < 0.75, "%d x %d to %d x %d at %d, %d: %d, not %g",
                          width, height, w, h, x, y, got, want);
            }
    free(pixel);
    free(to);
    free(slab.at);
}

Test(resize, is_that_of_plain_loops_in_double)
{
    static const int sizes[][4] = {{50, 40, 22, 22}, {30, 30, 30, 30}, {7, 9, 31, 17},
                                   {1, 1, 5, 3},     {200, 3, 4, 5},   {64, 48, 1, 1},
                                   {97, 61, 24, 32}, {3, 150, 8, 2},   {2, 2, 3, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < 4; k++) {
            const int *s = sizes[i];
            gp_box box = {0, 0, s[0], s[1]};
            if (k > 1) /* a part of it, between pixels */
                box = (gp_box){s[0] * 0.21, s[1] * 0.13, s[0] * 0.6, s[1] * 0.77};
            resize_is_plain(s[0], s[1], box, s[2], s[3], k % 2 ? GP_DATA_CHW : GP_DATA_HWC, k % 2);
        }
}

/* ---- Files ---------------------------------------------------------------------------------- */

static const gp_data_field fields[] = {
    {.name = "x", .dtype = GP_U8, .layout = GP_DATA_HWC, .rank = 3, .dim = {OUT, OUT, 3}},
    {.name = "y", .dtype = GP_I32, .classes = 2}};
static const gp_data_field grey_fields[] = {
    {.name = "x", .dtype = GP_U8, .layout = GP_DATA_HW, .rank = 2, .dim = {OUT, OUT}}};

static gp_data_set folder_set(int64_t whole)
{
    return (gp_data_set){.name = "train",
                         .source = &gp_data_folder,
                         .path = "photos",
                         .field = fields,
                         .fields = 2,
                         .batch = 1,
                         .slot = 1,
                         .depth = 1,
                         .decoder = (int64_t)gp_data_decoder(OUT, OUT, 128, whole)};
}

static void make_folders(void)
{
    enter_folder();
    cr_assert(mkdir("photos", 0700) == 0 && mkdir("photos/cat", 0700) == 0 &&
              mkdir("photos/dog", 0700) == 0);
}

static unsigned char pixels[4 * W * H * 2];

/* One colour comes out as it is, of every kind of file. */
Test(folder, every_kind_of_image_is_read)
{
    static const struct {
        const char *name;
        bool png;
        Picture picture;
        unsigned char pixel[4], rgb[3];
    } rows[] = {
        {"a.jpg", false, {W, H, 3, .pixel = pixels}, {200, 100, 50}, {200, 100, 50}},
        {"b.jpg", false, {W, H, 3, .whole = true, .pixel = pixels}, {9, 200, 90}, {9, 200, 90}},
        {"c.jpg", false, {W, H, 1, .pixel = pixels}, {77}, {77, 77, 77}},
        {"d.jpg", false, {W, H, 4, .pixel = pixels}, {255, 128, 0, 255}, {255, 128, 0}},
        {"e.png", true, {W, H, 3, .pixel = pixels}, {1, 2, 3}, {1, 2, 3}},
        {"f.png", true, {W, H, 1, .pixel = pixels}, {99}, {99, 99, 99}},
        {"g.png", true, {W, H, 4, .pixel = pixels}, {100, 50, 0, 51}, {224, 214, 204}},
        {"h.png", true, {W, H, 2, .pixel = pixels}, {100, 255}, {100, 100, 100}},
        {"i.png", true, {W, H, 1, .palette = true, .pixel = pixels}, {10}, {10, 245, 5}},
        {"j.png", true, {W, H, 1, .bits = 16, .pixel = pixels}, {0x80, 0x80}, {128, 128, 128}},
        {"k.png", true, {W, H, 3, .whole = true, .pixel = pixels}, {7, 8, 9}, {7, 8, 9}},
        {"l.jpg", true, {W, H, 3, .pixel = pixels}, {4, 5, 6}, {4, 5, 6}}, /* no JPEG */
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    make_folders();
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        const size_t size =
            (size_t)(rows[i].picture.channels * (rows[i].picture.bits == 16 ? 2 : 1));
        for (size_t k = 0; k < W * H * size; k++)
            pixels[k] = rows[i].pixel[k % size];
        snprintf(name, sizeof name, "photos/%s/%s", i < 6 ? "cat" : "dog", rows[i].name);
        if (rows[i].png)
            write_png(name, &rows[i].picture);
        else
            write_jpeg(name, &rows[i].picture, 100);
    }
    gp_data_set set = folder_set(W * H + 2000);
    for (int grey = 0; grey < 2; grey++) {
        if (grey) {
            set.field = grey_fields;
            set.fields = 1;
        }
        Opened o = open_set(&set, (gp_data_start){0});
        cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
        cr_assert_eq(gp_data_samples(o.data), ROWS);
        for (int i = 0; i < ROWS; i++) {
            gp_data_slot slot;
            int32_t label = 0;
            cr_assert_eq(gp_data_next(o.data, &slot), GP_OK, "%s", gp_data_error(o.data));
            const int luma = gp_image_luma(rows[i].rgb);
            for (int k = 0; k < OUT * OUT * (grey ? 1 : 3); k++)
                cr_assert(abs(slot.at[k] - (grey ? luma : rows[i].rgb[k % 3])) <=
                              (rows[i].png ? 0 : 3),
                          "%s: %d at %d", rows[i].name, slot.at[k], k);
            if (!grey) {
                memcpy(&label, slot.at + gp_data_offset(&set, 1), 4);
                cr_assert_eq(label, i >= 6);
            }
            gp_data_done(o.data, &slot);
        }
        close_set(&o);
    }
}

/* What the first image of the set is said to be. */
static const char *read_first(const gp_data_set *set, unsigned char *first)
{
    static char text[GP_DATA_TEXT];
    gp_data_slot slot;
    Opened o = open_set(set, (gp_data_start){.seed = 3});
    cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
    const int code = gp_data_next(o.data, &slot);
    snprintf(text, sizeof text, "%s", code == GP_OK ? "" : gp_data_error(o.data));
    if (code == GP_OK && first)
        memcpy(first, slot.at, OUT * OUT * 3);
    close_set(&o);
    return text;
}

static size_t read_whole(const char *name, unsigned char *to, size_t size)
{
    FILE *file = fopen(name, "rb");
    const size_t bytes = file ? fread(to, 1, size, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void make_one(bool png, bool whole)
{
    make_folders();
    draw_picture(pixels, W, H, 3, 1);
    const Picture p = {W, H, 3, .whole = whole, .pixel = pixels};
    if (png)
        write_png("photos/cat/a.jpg", &p);
    else
        write_jpeg("photos/cat/a.jpg", &p, 80);
    write_png("photos/dog/b.png", &p);
}

Test(folder, what_is_larger_than_planned_is_named)
{
    static unsigned char file[100000];
    make_one(false, true);
    gp_data_set set = folder_set(0);
    set.decoder = 150000;
    cr_assert_str_eq(read_first(&set, NULL), "");
    set.decoder = 40000;
    cr_assert_str_eq(read_first(&set, NULL), "photos/cat/a.jpg: 90 x 70 pixels need more than the "
                                             "40000 bytes that were planned for decoding");
    set.corrupt = GP_DATA_SKIP; /* the other one does not fit either */
    cr_assert(strstr(read_first(&set, NULL), "planned"));
    set = folder_set(0);
    write_jpeg("photos/cat/a.jpg", &(Picture){W, H, 3, .pixel = pixels}, 80);
    const size_t bytes = read_whole("photos/cat/a.jpg", file, sizeof file);
    for (size_t i = 0; i + 8 < bytes; i++)
        if (file[i] == 0xff && file[i + 1] == 0xc0)
            memset(file + i + 5, 0xff, 4); /* 65535 x 65535 */
    write_file("photos/cat/a.jpg", file, bytes);
    cr_assert_str_eq(read_first(&set, NULL),
                     "photos/cat/a.jpg: Maximum supported image dimension is 65500 pixels");
    for (size_t i = 0; i + 8 < bytes; i++)
        if (file[i] == 0xff && file[i + 1] == 0xc0)
            file[i + 6] = file[i + 8] = 0; /* 65280 x 65280 */
    write_file("photos/cat/a.jpg", file, bytes);
    cr_assert(strstr(read_first(&set, NULL), "65280 x 65280 pixels need more than"));
    set.corrupt = GP_DATA_SKIP;
    cr_assert_str_eq(read_first(&set, NULL), "");
}

/* Every cut is found, and says so; the last bytes of a file tell nothing new. */
static void cuts(bool png, bool whole)
{
    static unsigned char file[100000];
    make_one(png, whole);
    gp_data_set set = folder_set(W * H + 1000);
    const size_t bytes = read_whole("photos/cat/a.jpg", file, sizeof file);
    cr_assert_str_eq(read_first(&set, NULL), "");
    for (size_t cut = 0; cut + 2 < bytes; cut += 1 + cut / 37) {
        write_file("photos/cat/a.jpg", file, cut);
        const char *says = read_first(&set, NULL);
        cr_assert(strstr(says, "photos/cat/a.jpg: "), "cut at %zu of %zu: %s", cut, bytes, says);
    }
}

Test(folder, a_jpeg_that_is_cut_short_is_refused)
{
    cuts(false, false);
}
Test(folder, a_progressive_jpeg_that_is_cut_short_is_refused)
{
    cuts(false, true);
}
Test(folder, a_png_that_is_cut_short_is_refused)
{
    cuts(true, false);
}
Test(folder, an_interlaced_png_that_is_cut_short_is_refused)
{
    cuts(true, true);
}

Test(folder, damage_ends_in_a_picture_or_an_error)
{
    static unsigned char file[100000];
    for (int kind = 0; kind < 4; kind++) {
        int found = 0;
        make_one(kind & 1, kind & 2);
        gp_data_set set = folder_set(W * H + 1000);
        const size_t bytes = read_whole("photos/cat/a.jpg", file, sizeof file);
        for (unsigned i = 0; i < 300; i++) {
            const size_t at = gp_random_mix(i, 1) % bytes;
            const unsigned char was = file[at];
            file[at] = (unsigned char)gp_random_mix(i, 2);
            write_file("photos/cat/a.jpg", file, bytes);
            found += read_first(&set, NULL)[0] != 0;
            file[at] = was;
        }
        cr_assert(kind & 1 ? found > 280 : found > 25, "%d of kind %d", found, kind);
    }
}

/* ---- Crops and flips ------------------------------------------------------------------------ */

Test(folder, crops_and_flips_hang_on_the_number_alone)
{
    unsigned char first[OUT * OUT * 3], again[OUT * OUT * 3];
    make_one(false, false);
    gp_data_set set = folder_set(0);
    set.flip = 1;
    set.crop = 0.3;
    cr_assert_str_eq(read_first(&set, first), "");
    set.workers = 2;
    set.depth = 3;
    set.stack = 1 << 20;
    cr_assert_str_eq(read_first(&set, again), "");
    cr_assert_arr_eq(first, again, sizeof first);
    set.crop = 0;
    cr_assert_str_eq(read_first(&set, again), "");
    cr_assert(memcmp(first, again, sizeof first) != 0);
}

Test(folder, random_crops_lie_within_and_have_their_area)
{
    const gp_data_set base = folder_set(0);
    gp_data_set set = base;
    double least = 1, most = 0;
    int left = 0;
    set.crop = 0.25;
    for (unsigned i = 0; i < 2000; i++) {
        const gp_image image = {
            .set = &set, .width = 400, .height = 300, .number = i, .augment = 1};
        const gp_box box = gp_image_box(&image);
        const double share = box.width * box.height / 120000, aspect = box.width / box.height;
        cr_assert(box.x >= 0 && box.y >= 0 && box.x + box.width <= 400 &&
                  box.y + box.height <= 300);
        cr_assert(share > 0.245 && share <= 1 && aspect > 0.74 && aspect < 1.35);
        least = fmin(least, share);
        most = fmax(most, share);
        left += box.x + box.width / 2 < 200;
    }
    cr_assert(least < 0.27 && most > 0.9 && left > 900 && left < 1100);
    set.crop = 0;
    set.fit = GP_DATA_COVER;
    const gp_image image = {.set = &set, .width = 400, .height = 300, .augment = 1};
    const gp_box box = gp_image_box(&image);
    cr_assert(box.x == 50 && box.y == 0 && box.width == 300 && box.height == 300);
}

/* ---- Folders -------------------------------------------------------------------------------- */

Test(folder, what_is_missing_is_named)
{
    make_folders();
    gp_data_set set = folder_set(0);
    refuses(&set, "photos/cat: the folder of a class has no JPEG or PNG files");
    make_one(false, false);
    cr_assert_eq(mkdir("photos/eel", 0700), 0);
    refuses(&set, "photos/eel: the folder of a class has no JPEG or PNG files");
    cr_assert_eq(system("cp photos/dog/b.png photos/eel"), 0);
    refuses(&set, "photos: has folders for 3 classes, but the model has 2");
    cr_assert_eq(system("rm -r photos/eel photos/dog"), 0);
    refuses(&set, "photos: has folders for 1 classes, but the model has 2");
    cr_assert_eq(system("rm -r photos/cat"), 0);
    refuses(&set, "photos: has no folders within");
    set.path = "nowhere";
    refuses(&set, "nowhere: No such file or directory");
    set.path = "/dev/null";
    refuses(&set, "/dev/null: not a folder");
    cr_assert_eq(system("ls -A | grep tmp"), 256);
}

Test(folder, the_index_follows_the_folders)
{
    make_one(false, false);
    gp_data_set set = folder_set(0);
    set.workers = 1;
    set.stack = 1 << 20;
    for (int i = 0; i < 5; i++) {
        char command[200];
        Opened o = open_set(&set, (gp_data_start){0});
        cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
        cr_assert_eq(gp_data_samples(o.data), 2 + i);
        close_set(&o);
        snprintf(command, sizeof command,
                 "mkdir -p photos/cat/more && cp photos/dog/b.png photos/cat/more/%d.png", i);
        cr_assert_eq(system(command), 0);
    }
    /* A damaged index is made again. */
    cr_assert_eq(system("head -c 100 photos.gplan-index > x && mv x photos.gplan-index"), 0);
    Opened o = open_set(&set, (gp_data_start){0});
    cr_assert_eq(gp_data_samples(o.data), 7);
    close_set(&o);
    /* A file that vanishes is named when it is read. */
    remove("photos/cat/a.jpg");
    cr_assert_eq(system("touch -d 2001-01-01 photos/cat"), 0);
    o = open_set(&set, (gp_data_start){0});
    cr_assert_eq(gp_data_samples(o.data), 6);
    cr_assert_eq(remove("photos/dog/b.png"), 0); /* the last one */
    gp_data_seek(o.data, 5);
    gp_data_slot slot;
    cr_assert_eq(gp_data_next(o.data, &slot), GP_EDATA);
    cr_assert_str_eq(gp_data_error(o.data), "photos/dog/b.png: No such file or directory");
    close_set(&o);
}

/* ---- Many names ----------------------------------------------------------------------------- */

Test(sort, many_names_are_sorted_in_little_memory)
{
    enum { NAMES = 60000 };
    gp_sorter *s = calloc(1, sizeof *s);
    char before[64] = "", name[64];
    uint64_t end, sum = 0;
    enter_folder();
    s->file[0] = gp_index_scratch("a");
    s->file[1] = gp_index_scratch("b");
    cr_assert(gp_sort_begin(s));
    for (uint64_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%llx.jpg", (unsigned long long)gp_random_mix(i, 0));
        sum += gp_hash_bytes(GP_HASH_START, name, strlen(name));
        cr_assert(gp_sort_add(s, name));
    }
    cr_assert(gp_sort_end(s, &end));
    gp_names *n = &s->from[0];
    gp_names_begin(n, s->file[0], 0, end);
    int count = 0;
    for (; gp_names_next(n); count++) {
        cr_assert(strcmp(before, (char *)n->name) < 0);
        strcpy(before, (char *)n->name);
        sum -= gp_hash_bytes(GP_HASH_START, n->name, n->length);
    }
    cr_assert(count == NAMES && sum == 0);
    close(s->file[0]);
    close(s->file[1]);
    free(s);
}

static long resident(void)
{
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages * 4;
}

Test(folder, a_million_names_take_no_memory)
{
    enum { NAMES = 1000000 };
    make_one(false, false);
    gp_data_set set = folder_set(0);
    set.shuffle = 1;
    Opened o = open_set(&set, (gp_data_start){0}); /* makes an index of two */
    gp_index_header h;
    gp_index_entry e[2];
    cr_assert(gp_read_at(o.data->index, &h, sizeof h, 0) &&
              gp_read_at(o.data->index, e, sizeof e, sizeof h));
    static unsigned char tail[10000];
    const size_t rest = (size_t)(h.classes_end - h.folders);
    cr_assert(gp_read_at(o.data->index, tail, rest, h.folders));
    close_set(&o);
    FILE *file = fopen("photos.gplan-index", "wb"); /* the same with a million */
    const uint64_t names = sizeof h + (uint64_t)NAMES * sizeof *e, more = names - h.names;
    h.entries = NAMES;
    h.names = names;
    h.folders = names + 9;
    h.folders_end += more + 9 - 18;
    h.classes_end += more + 9 - 18;
    fwrite(&h, sizeof h, 1, file);
    for (int i = 0; i < NAMES; i++) {
        e[0].offset = names;
        e[0].length = 9;
        e[0].label = i % 2;
        fwrite(e, sizeof *e, 1, file);
    }
    fwrite("cat/a.jpg", 9, 1, file);
    fwrite(tail, rest, 1, file);
    fclose(file);
    const long before = resident();
    o = open_set(&set, (gp_data_start){0});
    cr_assert_eq(o.code, GP_OK, "%s", gp_data_error(o.data));
    cr_assert_eq(gp_data_samples(o.data), NAMES);
    for (int i = 0; i < 100; i++) {
        gp_data_slot slot;
        cr_assert_eq(gp_data_next(o.data, &slot), GP_OK, "%s", gp_data_error(o.data));
        gp_data_done(o.data, &slot);
    }
    const long grown = resident() - before;
    cr_assert(grown < 2048, "grew by %ld KiB", grown); /* 16 MB of entries are in the file */
    close_set(&o);
}
