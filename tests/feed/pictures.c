/* Writes folders of pictures that can be told apart, one a class: pictures FOLDER. JPEG and PNG of
 * several sizes and kinds by turns, some progressive or interlaced. */
#include "tests/data/images.h"

#include <stdio.h>
#include <sys/stat.h>

enum { CLASSES = 3, EACH = 12, LARGEST = 96 };

static unsigned char pixel[LARGEST * LARGEST * 3];

static void write_one(const char *folder, int class, int i)
{
    char path[1000];
    const Picture p = {.width = 40 + 7 * i % 50,
                       .height = 36 + 11 * i % 60,
                       .channels = i % 5 == 4 ? 1 : 3,
                       .whole = i % 6 == 5,
                       .pixel = pixel};
    const int count = p.width * p.height;
    draw_picture(pixel, p.width, p.height, p.channels, (unsigned)(class * EACH + i));
    for (int k = 0; k < count * p.channels; k++) /* dark, grey, bright */
        pixel[k] = (unsigned char)(pixel[k] / 4 + 90 * class);
    snprintf(path, sizeof path, "%s/%c/%02d.%s", folder, 'a' + class, i, i % 2 ? "jpg" : "png");
    if (i % 2)
        write_jpeg(path, &p, 90);
    else
        write_png(path, &p);
}

int main(int argc, char **argv)
{
    char path[1000];
    for (int class = 0; argc > 1 && class < CLASSES; class ++) {
        snprintf(path, sizeof path, "%s/%c", argv[1], 'a' + class);
        if (mkdir(path, 0700) != 0) {
            perror(path);
            return 1;
        }
        for (int i = 0; i < EACH; i++)
            write_one(argv[1], class, i);
    }
    return argc > 1 ? 0 : 2;
}
