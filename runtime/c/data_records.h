/* Records of fixed size, one after the other, after an optional header: CIFAR-10's batches. */
#ifndef GP_DATA_RECORDS_H
#define GP_DATA_RECORDS_H

#include "data_array.h"

GP_HOST int gp_records_open(gp_data *d)
{
    const gp_data_set *set = d->set;
    uint64_t size = 0;
    const int file = d->array[0].file = open(d->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return gp_data_errno(d->text, d->path);
    const int code = gp_data_size(file, d->path, &size, d->text);
    if (code != GP_OK)
        return code;
    if (size < (uint64_t)set->header || (size - (uint64_t)set->header) % (uint64_t)set->record)
        return gp_data_fail(d->text,
                            "%s: has %llu bytes: no whole number of records of %lld after a "
                            "header of %lld",
                            gp_data_brief(d->path), (unsigned long long)size,
                            (long long)set->record, (long long)set->header);
    d->total = (int64_t)((size - (uint64_t)set->header) / (uint64_t)set->record);
    for (int f = 0; f < set->fields; f++) {
        if (f > 0 && (d->array[f].file = fcntl(file, F_DUPFD_CLOEXEC, 0)) < 0)
            return gp_data_errno(d->text, d->path);
        d->array[f].base = (uint64_t)(set->header + set->field[f].at);
        d->array[f].stride = (uint64_t)set->record;
    }
    return GP_OK;
}

static const gp_data_source gp_data_records = {gp_records_open, gp_data_array_read};

#endif
