/* The model's file and those beside it that hold external data, mapped. External data is in the
 * model's own folder or below it: each part of its path is opened by itself, and none may be a
 * link, so that no path leads out. */
#include "frontend/onnx/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *location; /* NULL: the model itself */
    unsigned char *at;
    size_t length;
} Mapping;

struct OnnxFiles {
    Arena *arena;
    int folder;
    ARRAY(Mapping) mapping;
};

/* Takes the descriptor over. */
static const char *map(OnnxFiles *files, int file, const char *location, Mapping *mapping)
{
    struct stat info;
    const char *fault = NULL;
    *mapping = (Mapping){.location = location};
    if (file < 0 || fstat(file, &info) != 0)
        fault = strerror(errno);
    else if (!S_ISREG(info.st_mode))
        fault = "it is not a regular file";
    else if (info.st_size > 0) {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at == MAP_FAILED)
            fault = strerror(errno);
        else
            *mapping = (Mapping){location, at, (size_t)info.st_size};
    }
    if (file >= 0)
        close(file);
    if (!fault)
        ARRAY_PUSH(files->arena, &files->mapping, *mapping);
    return fault;
}

OnnxFiles *onnx_open(Arena *arena, const char *path, Wire *wire, const char **fault)
{
    OnnxFiles *files = ARENA_NEW(arena, OnnxFiles);
    Mapping mapping;
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_copy(arena, path, (size_t)(slash - path) + 1) : ".";
    files->arena = arena;
    files->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *fault = map(files, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), NULL, &mapping);
    if (*fault) {
        onnx_close(files);
        return NULL;
    }
    *wire = (Wire){mapping.at, mapping.at ? mapping.at + mapping.length : NULL};
    return files;
}

static bool leads_out(const char *location)
{
    for (const char *at = location;; at++) {
        size_t length = strcspn(at, "/");
        if (!length || (length == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at += length;
        if (!*at)
            return false;
    }
}

static const char *open_beside(OnnxFiles *files, const char *location, int *file)
{
    const char *at = location;
    *file = -1;
    if (leads_out(location))
        return "it is outside the model's folder";
    int folder = dup(files->folder);
    for (;;) {
        size_t length = strcspn(at, "/");
        char part[MAX_ONNX_NAME + 1];
        memcpy(part, at, length);
        part[length] = 0;
        bool last = !at[length];
        int next =
            openat(folder, part,
                   O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        int why = errno;
        close(folder);
        if (next < 0)
            return why == ELOOP ? "it is a link" : strerror(why);
        if (last) {
            *file = next;
            return NULL;
        }
        folder = next;
        at += length + 1;
    }
}

const char *onnx_external(OnnxFiles *files, OnnxTensor *tensor)
{
    const Mapping *mapping = NULL;
    Mapping made;
    for (size_t i = 0; i < files->mapping.count && !mapping; i++)
        if (files->mapping.at[i].location &&
            strcmp(files->mapping.at[i].location, tensor->location) == 0)
            mapping = &files->mapping.at[i];
    if (!mapping) {
        int file;
        const char *fault = open_beside(files, tensor->location, &file);
        if (!fault)
            fault = map(files, file, arena_printf(files->arena, "%s", tensor->location), &made);
        if (fault)
            return arena_printf(files->arena, "the file \"%s\": %s", tensor->location, fault);
        mapping = &made;
    }
    uint64_t bytes = (uint64_t)tensor->count * elem_size(tensor->elem);
    if ((tensor->length && tensor->length != bytes) || tensor->offset > mapping->length ||
        bytes > mapping->length - tensor->offset)
        return arena_printf(files->arena, "the file \"%s\" does not hold its %llu bytes at %llu",
                            tensor->location, (unsigned long long)bytes,
                            (unsigned long long)tensor->offset);
    tensor->data = bytes ? mapping->at + tensor->offset : (const unsigned char *)"";
    return NULL;
}

void onnx_close(OnnxFiles *files)
{
    for (size_t i = 0; i < files->mapping.count; i++)
        if (files->mapping.at[i].at)
            munmap(files->mapping.at[i].at, files->mapping.at[i].length);
    if (files->folder >= 0)
        close(files->folder);
}
