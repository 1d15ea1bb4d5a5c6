/* The files that a user named -> a Model. */
#include "frontend/command/import.h"
#include "frontend/command/watch.h"

/* The model, with what is appended to it. */
static const Source *read_all(Arena *arena, Diag *diag, const Options *o, const char *const *path,
                              size_t count, OnnxImport **import)
{
    const Source **file = ARENA_ARRAY(arena, const Source *, count);
    *import = NULL;
    for (size_t i = 0; i < count; i++) {
        bool foreign = i == 0 && onnx_is_path(path[i]);
        if (foreign)
            *import = import_read(arena, diag, path[i], o);
        file[i] = *import && foreign ? (*import)->source
                  : foreign          ? NULL
                                     : source_read(arena, diag, path[i], SOURCE_LIMIT);
        if (!file[i])
            return NULL;
    }
    return count == 1 ? file[0] : source_join(arena, diag, file, count, SOURCE_LIMIT);
}

bool model_read(Arena *arena, Diag *diag, const Options *o, const char *const *path, size_t count,
                Model *model, OnnxImport **import)
{
    /* the files -> text */
    const Source *source = read_all(arena, diag, o, path, count, import);
    if (!source)
        return false;
    watch_say("read     %s, %zu bytes", source->file, source->length);

    /* text -> syntax tree */
    const Ast *ast = parse(arena, diag, source);
    size_t defines = *import && (*import)->fixed ? 0 : o->define.count;
    uint8_t programs = o->programs ? programs_read(o->programs) : 0;
    *model = (Model){.source = source,
                     .ast = ast,
                     .define = o->define.at,
                     .defines = defines,
                     .infer = o->infer || programs == 1u << PROGRAM_FORWARD,
                     .programs = programs};
    return ast != NULL;
}
