/* The files that a user named -> a Model. */
#include "frontend/command/options.h"
#include "frontend/command/watch.h"

/* The model, with what is appended to it. */
static const Source *read_all(Arena *arena, Diag *diag, const char *const *path, size_t count)
{
    const Source **file = ARENA_ARRAY(arena, const Source *, count);
    for (size_t i = 0; i < count; i++)
        if (!(file[i] = source_read(arena, diag, path[i], SOURCE_LIMIT)))
            return NULL;
    return count == 1 ? file[0] : source_join(arena, diag, file, count, SOURCE_LIMIT);
}

bool model_read(Arena *arena, Diag *diag, const Options *o, const char *const *path, size_t count,
                Model *model)
{
    /* the files -> text */
    const Source *source = read_all(arena, diag, path, count);
    if (!source)
        return false;
    watch_say("read     %s, %zu bytes", source->file, source->length);

    /* text -> syntax tree */
    const Ast *ast = parse(arena, diag, source);
    *model = (Model){source, ast, o->define.at, o->define.count, o->infer};
    return ast != NULL;
}
