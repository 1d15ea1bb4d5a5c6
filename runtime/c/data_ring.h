/* Runs a data set (data.h): a ring of slots that workers fill ahead of the step.
 *
 * Workers take samples of the next slot in small groups, so that all of them work on the slot that
 * is waited for. Who fills what changes nothing: each sample has its place, and its random choices
 * hang on its number. An error is kept with its slot, the first sample's if there are several, so
 * that the step meets it where it would have met it without workers. */
#ifndef GP_DATA_RING_H
#define GP_DATA_RING_H

#include "data_order.h"
#include "data_state.h"

#include <signal.h>

/* They have their room. */
typedef char gp_data_state_fits[sizeof(gp_data) <= GP_DATA_STATE ? 1 : -1];
typedef char gp_data_note_fits[sizeof(gp_data_note) <= GP_DATA_NOTE ? 1 : -1];
typedef char gp_data_worker_fits[sizeof(gp_data_worker) <= GP_DATA_NOTE ? 1 : -1];

enum { GP_DATA_INSTEAD = 100 }; /* damaged samples in a row that others may stand in for */

/* ---- Which sample it is --------------------------------------------------------------------- */

GP_FUNCTION int64_t gp_data_held(const gp_data *d)
{
    return (int64_t)((double)d->total * d->set->held_out + 0.5);
}

/* Sample i of the part as one of the source. */
GP_FUNCTION int64_t gp_data_of_part(const gp_data *d, int64_t i)
{
    if (d->set->part == GP_DATA_ALL)
        return i;
    const gp_order split = gp_order_make((uint64_t)d->total, d->set->split_seed, UINT64_MAX);
    const int64_t from = d->set->part == GP_DATA_TRAIN ? gp_data_held(d) : 0;
    return (int64_t)gp_order_at(&split, (uint64_t)(from + i));
}

GP_FUNCTION int64_t gp_data_pick(const gp_data *d, int64_t epoch, int64_t position)
{
    if (!d->set->shuffle)
        return gp_data_of_part(d, position);
    const gp_order order = gp_order_make((uint64_t)d->samples, d->start.seed, (uint64_t)epoch);
    return gp_data_of_part(d, (int64_t)gp_order_at(&order, (uint64_t)position));
}

/* The place in its epoch of the first sample of a slot. */
GP_FUNCTION int64_t gp_data_position(const gp_data *d, int64_t slot)
{
    const int64_t step = slot / d->micros, turn = slot % d->micros;
    const int64_t ranks = d->start.as_ranks ? d->start.as_ranks : 1;
    const int64_t rank = d->start.rank + turn % ranks, micro = turn / ranks;
    return step % d->steps * d->set->batch + (rank * (d->micros / ranks) + micro) * d->set->slot;
}

/* How many samples of a slot count. */
GP_FUNCTION int64_t gp_data_valid(const gp_data *d, int64_t slot)
{
    const int64_t left = d->samples - gp_data_position(d, slot);
    return left < 0 ? 0 : left < d->set->slot ? left : d->set->slot;
}

/* ---- Filling -------------------------------------------------------------------------------- */

GP_FUNCTION unsigned char *gp_data_place(const gp_data *d, int64_t slot)
{
    return (unsigned char *)d->start.ring +
           (uint64_t)(slot % d->set->depth) * gp_data_offset(d->set, d->set->fields);
}

/* A damaged sample is one of the others, if the set says so. */
GP_HOST int gp_data_instead(gp_data_worker *w, gp_data_job *job)
{
    gp_data *d = w->data;
    for (int i = 0; i < GP_DATA_INSTEAD; i++) {
        const uint64_t draw =
            gp_data_random(d->start.seed, job->number, GP_DRAW_INSTEAD + (uint64_t)i);
        job->sample = gp_data_of_part(d, (int64_t)((draw * (uint64_t)d->samples) >> 32));
        if (d->set->source->read(w, job) == GP_OK)
            return GP_OK;
    }
    return GP_EDATA;
}

/* Sample i of a slot. */
GP_HOST_FAST int gp_data_fill_one(gp_data_worker *w, int64_t slot, int64_t i)
{
    gp_data *d = w->data;
    const gp_data_set *set = d->set;
    const int64_t position = gp_data_position(d, slot) + i;
    const int64_t epoch = slot / d->micros / d->steps;
    unsigned char *at = gp_data_place(d, slot);
    gp_data_job job;
    for (int f = 0; f < set->fields; f++) {
        const uint64_t bytes = gp_data_sample(&set->field[f]);
        job.field[f] = at + gp_data_offset(set, f) + bytes * (uint64_t)i;
        if (position >= d->samples)
            memset(job.field[f], 0, bytes);
    }
    if (position >= d->samples)
        return GP_OK;
    job.number = (uint64_t)(epoch * d->samples + position);
    job.sample = gp_data_pick(d, epoch, position);
    job.augment = set->part != GP_DATA_HELD_OUT;
    int code = set->source->read(w, &job);
    if (code != GP_OK && set->corrupt == GP_DATA_SKIP) {
        code = gp_data_instead(w, &job);
        pthread_mutex_lock(&d->lock);
        d->skipped += code == GP_OK;
        pthread_mutex_unlock(&d->lock);
    }
    return code;
}

GP_FUNCTION void gp_data_begin(gp_data_note *note, int64_t slot, int64_t samples)
{
    note->number = slot;
    note->filled = 0;
    note->failed = samples;
}

/* Samples [from, to) of a slot. Returns the first that failed, or `to`. */
GP_HOST_FAST int64_t gp_data_fill_some(gp_data_worker *w, int64_t slot, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        if (gp_data_fill_one(w, slot, i) != GP_OK)
            return i;
    return to;
}

/* With the lock: what became of samples [from, to). */
GP_FUNCTION void gp_data_settle(gp_data_note *note, int64_t failed, int64_t from, int64_t to,
                                const char *text)
{
    note->filled += to - from;
    if (failed < to && failed < note->failed) {
        note->failed = failed;
        memcpy(note->text, text, GP_DATA_TEXT);
    }
}

/* ---- Workers -------------------------------------------------------------------------------- */

/* With the lock: takes a few samples of the next slot and fills them. */
GP_HOST_FAST void gp_data_work(gp_data_worker *w)
{
    gp_data *d = w->data;
    const int64_t slot = d->claimed, from = d->claimed_samples, all = d->set->slot;
    const int64_t group = all / (4 * d->set->workers) + 1,
                  to = from + group < all ? from + group : all;
    gp_data_note *note = &d->note[slot % d->set->depth];
    if (from == 0)
        gp_data_begin(note, slot, all);
    d->claimed_samples = to < all ? to : 0;
    d->claimed += to == all;
    d->busy++;
    pthread_mutex_unlock(&d->lock);
    const int64_t failed = gp_data_fill_some(w, slot, from, to);
    pthread_mutex_lock(&d->lock);
    d->busy--;
    gp_data_settle(note, failed, from, to, w->text);
    if (note->filled == all)
        pthread_cond_broadcast(&d->filled);
    if (d->busy == 0)
        pthread_cond_broadcast(&d->idle);
}

GP_HOST_LOOP void *gp_data_run(void *argument)
{
    gp_data_worker *w = (gp_data_worker *)argument;
    gp_data *d = w->data;
    char text[GP_DATA_TEXT] = {0};
    w->text = text;
    pthread_mutex_lock(&d->lock);
    while (!d->stop)
        if (d->pause || d->claimed >= d->end || d->claimed >= d->freed + d->set->depth)
            pthread_cond_wait(&d->given, &d->lock);
        else
            gp_data_work(w);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Threads with the stacks that were planned. Signals are for the thread that runs the model. */
GP_HOST int gp_data_hire(gp_data *d)
{
    const size_t stack = (size_t)gp_data_stack(d->set);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = 0;
    for (int i = 0; i < d->set->workers && why == 0; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        why = pthread_attr_setstack(&attributes, d->worker[i].stack, stack);
        if (why == 0)
            why = pthread_create(&d->worker[i].thread, &attributes, gp_data_run, &d->worker[i]);
        pthread_attr_destroy(&attributes);
        d->started += why == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why == 0 ? GP_OK
                    : gp_data_fail(d->text, "data %s: no thread for a worker: %s", d->set->name,
                                   strerror(why));
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* Divides the memory: the state, notes on slots, workers, then stacks and decoders. */
GP_HOST void gp_data_divide(gp_data *d)
{
    const gp_data_set *set = d->set;
    const gp_data_bytes bytes = gp_data_plan(set);
    const int crews = set->workers ? set->workers : 1;
    unsigned char *at = (unsigned char *)d->start.work + GP_DATA_STATE;
    d->note = (gp_data_note *)at;
    for (int i = 0; i < set->depth; i++)
        d->note[i].number = -1;
    at += set->depth * GP_DATA_NOTE;
    d->worker = (gp_data_worker *)at;
    at += crews * GP_DATA_NOTE;
    at += (GP_DATA_PAGE - (uintptr_t)at % GP_DATA_PAGE) % GP_DATA_PAGE;
    for (int i = 0; i < crews; i++, at += bytes.worker) {
        d->worker[i].data = d;
        d->worker[i].stack = at;
        d->worker[i].decoder =
            at + bytes.worker - gp_data_round((uint64_t)set->decoder, GP_DATA_PAGE);
        d->worker[i].text = d->text;
    }
}

/* Which samples are read, in how many steps. */
GP_HOST int gp_data_count(gp_data *d)
{
    const gp_data_set *set = d->set;
    const int64_t held = gp_data_held(d);
    d->samples = set->part == GP_DATA_ALL     ? d->total
                 : set->part == GP_DATA_TRAIN ? d->total - held
                                              : held;
    d->micros = set->batch / set->slot / (d->start.ranks ? d->start.ranks : 1);
    d->steps = (d->samples + (set->last == GP_DATA_PAD ? set->batch - 1 : 0)) / set->batch;
    if (d->samples <= 0)
        return gp_data_fail(d->text, "%s: data %s has no samples: %lld in all, %lld held out",
                            gp_data_brief(d->path), set->name, (long long)d->total,
                            (long long)(set->part == GP_DATA_ALL ? 0 : held));
    if (d->steps == 0)
        return gp_data_fail(
            d->text, "%s: data %s has %lld samples, which do not fill a batch of %lld",
            gp_data_brief(d->path), set->name, (long long)d->samples, (long long)set->batch);
    const int64_t slots = d->steps * d->micros;
    d->end = set->epochs && set->epochs < INT64_MAX / slots ? set->epochs * slots : INT64_MAX;
    return GP_OK;
}

/* The files, before there is anything to wait for. */
GP_HOST int gp_data_look(gp_data *d)
{
    const char *path = d->start.path ? d->start.path : d->set->path;
    if (!path && !d->start.fill && !d->start.user)
        return gp_data_fail(d->text, "data %s: no path is given", d->set->name);
    if (path && strlen(path) >= sizeof d->path)
        return gp_data_fail(d->text, "data %s: the path is too long", d->set->name);
    snprintf(d->path, sizeof d->path, "%s", path ? path : "callback");
    for (size_t length = strlen(d->path); length > 1 && d->path[length - 1] == '/';)
        d->path[--length] = 0;
    return d->set->source->open(d);
}

/* Checks index and headers and starts the workers. *data is the state, within start->work, also
 * where it failed: gp_data_error() says why. */
GP_HOST int gp_data_open(gp_data **data, const gp_data_set *set, const gp_data_start *start)
{
    gp_data *d = (gp_data *)start->work;
    memset(d, 0, sizeof *d);
    *data = d;
    d->set = set;
    d->start = *start;
    d->index = -1;
    for (int f = 0; f < GP_DATA_FIELDS; f++)
        d->array[f].file = -1;
    int code = gp_data_look(d);
    if (code == GP_OK)
        code = gp_data_count(d);
    if (code != GP_OK)
        return code;
    gp_data_divide(d);
    d->claimed = d->head = d->freed = start->step * d->micros;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->filled, NULL);
    pthread_cond_init(&d->given, NULL);
    pthread_cond_init(&d->idle, NULL);
    d->opened = 1;
    return gp_data_hire(d);
}

/* ---- Reading -------------------------------------------------------------------------------- */

GP_HOST const char *gp_data_error(const gp_data *d)
{
    return d->text;
}

/* Samples that are read in an epoch (with GP_DATA_DROP all but the last few), steps of one, and
 * damaged samples that others stood in for. */
GP_HOST int64_t gp_data_samples(const gp_data *d)
{
    return d->samples;
}

GP_HOST int64_t gp_data_steps(const gp_data *d)
{
    return d->steps;
}

GP_HOST int64_t gp_data_skipped(gp_data *d)
{
    pthread_mutex_lock(&d->lock);
    const int64_t skipped = d->skipped;
    pthread_mutex_unlock(&d->lock);
    return skipped;
}

/* With the lock: the slot at the head, filled by us or by the workers. */
GP_HOST_FAST gp_data_note *gp_data_await(gp_data *d)
{
    const int64_t all = d->set->slot;
    gp_data_note *note = &d->note[d->head % d->set->depth];
    if (d->set->workers == 0 && note->number != d->head) {
        gp_data_begin(note, d->head, all);
        pthread_mutex_unlock(&d->lock);
        const int64_t failed = gp_data_fill_some(&d->worker[0], d->head, 0, all);
        pthread_mutex_lock(&d->lock);
        gp_data_settle(note, failed, 0, all, d->text);
    }
    while (note->number != d->head || note->filled < all)
        pthread_cond_wait(&d->filled, &d->lock);
    return note;
}

/* Whether the next slot is filled, so that nobody would wait for it. */
GP_HOST_LOOP int gp_data_is_ready(gp_data *d)
{
    pthread_mutex_lock(&d->lock);
    const gp_data_note *note = &d->note[d->head % d->set->depth];
    const int ready = d->head < d->end && d->head < d->freed + d->set->depth &&
                      note->number == d->head && note->filled == d->set->slot &&
                      note->failed == d->set->slot;
    pthread_mutex_unlock(&d->lock);
    return ready;
}

/* The next slot, which is read where it lies until gp_data_done(). Waits until it is there. */
GP_HOST_LOOP int gp_data_next(gp_data *d, gp_data_slot *slot)
{
    if (d->head >= d->end)
        return GP_DATA_END;
    pthread_mutex_lock(&d->lock);
    if (d->head >= d->freed + d->set->depth) {
        pthread_mutex_unlock(&d->lock);
        return gp_data_fail(d->text, "data %s: all slots are out", d->set->name);
    }
    const gp_data_note *note = gp_data_await(d);
    const int failed = note->failed < d->set->slot;
    if (failed)
        memmove(d->text, note->text, GP_DATA_TEXT);
    slot->at = gp_data_place(d, d->head);
    slot->number = d->head;
    slot->step = d->head / d->micros;
    slot->epoch = slot->step / d->steps;
    slot->valid = gp_data_valid(d, d->head);
    slot->place = (int32_t)(d->head % d->set->depth);
    d->head += !failed;
    pthread_mutex_unlock(&d->lock);
    if (failed)
        return GP_EDATA;
    return GP_OK;
}

/* Gives the oldest slot that is out back to the workers. */
GP_HOST void gp_data_done(gp_data *d, const gp_data_slot *slot)
{
    pthread_mutex_lock(&d->lock);
    d->freed = slot->number + 1;
    pthread_cond_broadcast(&d->given);
    pthread_mutex_unlock(&d->lock);
}

/* The next slot is the first of this step. Slots that are out are gone. */
GP_HOST void gp_data_seek(gp_data *d, int64_t step)
{
    pthread_mutex_lock(&d->lock);
    d->pause = 1;
    while (d->busy > 0)
        pthread_cond_wait(&d->idle, &d->lock);
    for (int i = 0; i < d->set->depth; i++)
        d->note[i].number = -1;
    d->claimed = d->head = d->freed = step * d->micros;
    d->claimed_samples = 0;
    d->pause = 0;
    pthread_cond_broadcast(&d->given);
    pthread_mutex_unlock(&d->lock);
}

/* Ends the workers, at any moment, and closes the files. */
GP_HOST void gp_data_close(gp_data *d)
{
    if (d->opened) {
        pthread_mutex_lock(&d->lock);
        d->stop = 1;
        pthread_cond_broadcast(&d->given);
        pthread_mutex_unlock(&d->lock);
        for (int i = 0; i < d->started; i++)
            pthread_join(d->worker[i].thread, NULL);
        pthread_cond_destroy(&d->idle);
        pthread_cond_destroy(&d->given);
        pthread_cond_destroy(&d->filled);
        pthread_mutex_destroy(&d->lock);
        d->opened = d->started = 0;
    }
    for (int f = 0; f < GP_DATA_FIELDS; f++)
        if (d->array[f].file >= 0)
            close(d->array[f].file);
    if (d->index >= 0)
        close(d->index);
    for (int f = 0; f < GP_DATA_FIELDS; f++)
        d->array[f].file = -1;
    d->index = -1;
}

#endif
