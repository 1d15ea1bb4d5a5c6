/* A data set that is open: what the ring (data_ring.h) and the sources (data_npy.h ...) share. */
#ifndef GP_DATA_STATE_H
#define GP_DATA_STATE_H

#include "data.h"
#include "file.h"
#include "rng.h"

#include <pthread.h>
#include <stdarg.h>

enum { GP_DATA_PATH = 2048 };

typedef struct gp_data gp_data;

/* A thread that fills slots, or the one that asks for them. */
typedef struct {
    gp_data *data;
    unsigned char *decoder; /* set->decoder bytes */
    unsigned char *stack;
    pthread_t thread;
    char *text; /* says what went wrong: GP_DATA_TEXT bytes */
} gp_data_worker;

/* One sample of a run. */
typedef struct {
    int64_t sample;  /* which one of the source */
    uint64_t number; /* counts all samples of the run: with the seed, what random choices hang on */
    int32_t augment; /* whether there are any */
    unsigned char *field[GP_DATA_FIELDS]; /* where its fields go */
} gp_data_job;

/* A kind of files. `open` checks what their headers tell, and sets data->samples; `read` is called
 * by many threads. Both return GP_OK, or GP_EDATA with a text that names file and place. */
typedef struct gp_data_source {
    int (*open)(gp_data *data);
    int (*read)(gp_data_worker *worker, const gp_data_job *job);
} gp_data_source;

/* Where samples of a field lie: one each `stride` bytes, from `base` on. */
typedef struct {
    int file; /* -1: none */
    uint64_t base, stride;
} gp_data_array;

/* What is known of one slot of the ring. */
typedef struct {
    int64_t number; /* -1: none */
    int64_t filled; /* samples */
    int64_t failed; /* the first that could not be read; set->slot: none did */
    char text[GP_DATA_TEXT];
} gp_data_note;

struct gp_data {
    const gp_data_set *set;
    gp_data_start start;
    char path[GP_DATA_PATH];
    gp_data_array array[GP_DATA_FIELDS];
    int index;       /* the file that names files; -1: none */
    int64_t classes; /* that it knows */
    int64_t total;   /* samples of the source */
    int64_t samples; /* of the part that is read */
    int64_t steps;   /* of an epoch */
    int64_t micros;  /* slots of a step, on this rank */
    int64_t end;     /* the first slot that is not read any more */

    pthread_mutex_t lock;
    pthread_cond_t filled, given, idle; /* a slot was; one was given back; nobody is at work */
    gp_data_note *note;
    gp_data_worker *worker;
    int32_t started; /* workers */
    int32_t busy;    /* workers that fill something now */
    int32_t opened, stop, pause;
    int64_t claimed, claimed_samples; /* the slot to fill next, and how many of it are taken */
    int64_t head, freed;              /* the slot to hand out next; the first that is not back */
    int64_t skipped;
    char text[GP_DATA_TEXT];
};

/* Writes a message, and returns GP_EDATA. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
GP_HOST int
gp_data_fail(char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, GP_DATA_TEXT, format, arguments);
    va_end(arguments);
    return GP_EDATA;
}

/* A path for a message: the end of a long one. */
GP_HOST const char *gp_data_brief(const char *path)
{
    const size_t length = strlen(path), most = GP_DATA_TEXT / 2;
    return length < most ? path : path + length - most;
}

/* Says why a call of the system failed. */
GP_HOST int gp_data_errno(char *text, const char *path)
{
    return gp_data_fail(text, "%s: %s", gp_data_brief(path), strerror(errno));
}

/* Bytes of a file that is open; GP_EDATA where it has no size. */
GP_HOST int gp_data_size(int file, const char *path, uint64_t *size, char *text)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return gp_data_errno(text, path);
    if (!S_ISREG(info.st_mode))
        return gp_data_fail(text, "%s: not a file", gp_data_brief(path));
    *size = (uint64_t)info.st_size;
    return GP_OK;
}

/* The path of a field's file. */
GP_HOST int gp_data_file(gp_data *d, const gp_data_field *field, char *path)
{
    const int length = field->file ? snprintf(path, GP_DATA_PATH, "%s/%s", d->path, field->file)
                                   : snprintf(path, GP_DATA_PATH, "%s", d->path);
    if (length >= GP_DATA_PATH)
        return gp_data_fail(d->text, "%s: the path is too long", gp_data_brief(d->path));
    return GP_OK;
}

/* A random word for this sample; `what` names the choice. */
GP_FUNCTION uint32_t gp_data_random(uint64_t seed, uint64_t number, uint64_t what)
{
    const uint64_t mixed = gp_random_mix(gp_random_mix(seed, number), what);
    return (uint32_t)(mixed >> 32);
}

/* What random choices are about. */
enum { GP_DRAW_FLIP = 1, GP_DRAW_DOWN, GP_DRAW_ACROSS, GP_DRAW_AREA, GP_DRAW_ASPECT = 32 };
enum { GP_DRAW_INSTEAD = 64 };

#endif
