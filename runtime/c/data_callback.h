/* Samples that a function of the user's makes: same order, ring and workers as those of files. */
#ifndef GP_DATA_CALLBACK_H
#define GP_DATA_CALLBACK_H

#include "data_array.h"

GP_HOST int gp_callback_open(gp_data *d)
{
    if (!d->start.fill)
        return gp_data_fail(d->text, "data %s: no function was given that fills samples",
                            d->set->name);
    d->total = d->start.samples;
    return GP_OK;
}

GP_HOST_FAST int gp_callback_read(gp_data_worker *w, const gp_data_job *job)
{
    const gp_data *d = w->data;
    void *field[GP_DATA_FIELDS];
    char why[GP_DATA_TEXT / 2] = "the function that fills samples returned an error";
    int64_t which = 0, number = 0;
    for (int f = 0; f < d->set->fields; f++)
        field[f] = job->field[f];
    if (d->start.fill(d->start.user, job->sample, field, why, sizeof why) != 0)
        return gp_data_fail(w->text, "data %s: sample %lld: %.*s", d->set->name,
                            (long long)job->sample, (int)sizeof why - 1, why);
    for (int f = 0; f < d->set->fields; f++) {
        if (!gp_data_check(&d->set->field[f], job->field[f], &which, &number))
            return gp_data_array_range(w, f, job->sample, which, number);
        if (d->set->field[f].layout != GP_DATA_PLAIN && job->augment)
            gp_data_augment(d, job, f);
    }
    return GP_OK;
}

static const gp_data_source gp_data_callback = {gp_callback_open, gp_callback_read};

#endif
