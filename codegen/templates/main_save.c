/* ---- Checkpoints ---- */

/* m.safetensors at step 500 -> m.500.safetensors */
static void kept_name(const run *r, uint64_t step, char *name, size_t size)
{
    const char *slash = strrchr(r->s.save, '/'), *dot = strrchr(r->s.save, '.');
    const size_t stem =
        dot && dot > (slash ? slash : r->s.save) ? (size_t)(dot - r->s.save) : strlen(r->s.save);
    snprintf(name, size, "%.*s.%" PRIu64 "%s", (int)stem, r->s.save, step, r->s.save + stem);
}

/* The step of a checkpoint by the name of its file; 0: it is none of this run so far. */
static uint64_t kept_step(const run *r, const char *file)
{
    const char *slash = strrchr(r->s.save, '/'), *base = slash ? slash + 1 : r->s.save;
    const char *dot = strrchr(base, '.');
    const size_t stem = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    char *end;
    if (strncmp(file, base, stem) != 0 || file[stem] != '.' || file[stem + 1] < '0' ||
        file[stem + 1] > '9')
        return 0;
    const uint64_t step = strtoull(file + stem + 1, &end, 10);
    return strcmp(end, base + stem) == 0 && step <= r->m.step ? step : 0;
}

/* The folder that the run is saved in. */
static DIR *open_folder(const run *r)
{
    char folder[4096];
    const char *slash = strrchr(r->s.save, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - r->s.save) + 1 : 1,
             slash ? r->s.save : ".");
    return opendir(folder);
}

/* Removes the oldest checkpoint where there are more than are to be kept; false: there are not. */
static int remove_oldest(const run *r)
{
    char name[4096];
    DIR *files = open_folder(r);
    uint64_t count = 0, oldest = UINT64_MAX;
    for (const struct dirent *file; files && (file = readdir(files));) {
        const uint64_t step = kept_step(r, file->d_name);
        count += step > 0;
        oldest = step > 0 && step < oldest ? step : oldest;
    }
    if (files)
        closedir(files);
    if (count <= r->s.keep)
        return 0;
    kept_name(r, oldest, name, sizeof name);
    return unlink(name) == 0;
}

/* The run as it is now. The file is replaced as a whole, so a second name for the last one keeps
 * it. */
static int save(run *r)
{
    char name[4096];
    if (net_save(&r->m, r->s.save) != NET_OK)
        return model_failed(r);
    if (!r->s.keep)
        return 0;
    kept_name(r, r->m.step, name, sizeof name);
#if MODEL_RANKS
    int64_t missing = 0;
    if (rank == 0) {
        unlink(name);
        missing = link(r->s.save, name) != 0;
    }
    if (net_agree(&r->m, &missing) != NET_OK || (missing && net_save(&r->m, name) != NET_OK))
        return model_failed(r);
    while (rank == 0 && remove_oldest(r))
        ;
#else
    unlink(name);
    if (link(r->s.save, name) != 0 && net_save(&r->m, name) != NET_OK)
        return model_failed(r);
    while (remove_oldest(r))
        ;
#endif
    return 0;
}

/* Removes what a process left that was killed while it saved: m.safetensors.PID.N.tmp. A file has
 * one run that saves to it. */
static void remove_remains(const run *r)
{
    const char *slash = strrchr(r->s.save, '/'), *base = slash ? slash + 1 : r->s.save;
    const size_t length = strlen(base);
    DIR *files = open_folder(r);
    for (const struct dirent *file; files && (file = readdir(files));) {
        int end = 0;
        if (strncmp(file->d_name, base, length) == 0 &&
            sscanf(file->d_name + length, ".%*d.%*u.tmp%n", &end) == 0 && end > 0 &&
            !file->d_name[length + (size_t)end])
            unlinkat(dirfd(files), file->d_name, 0);
    }
    if (files)
        closedir(files);
}
