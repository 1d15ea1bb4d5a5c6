/* `gplan verify`: is a plan right, whoever made it? */
#include "codegen/codegen.h"
#include "frontend/command/options.h"

int verify_main(Arena *arena, const Options *o)
{
    const Source *file =
        source_read(arena, diag_new(arena, stderr, false), o->input.at[0], PLAN_LIMIT);
    if (!file)
        return 1;
    Plan *plan;
    const char *fault = plan_verify(arena, (Text){file->text, file->length}, &plan);
    if (fault) {
        fprintf(stderr, "%s: error: %s\n", file->file, fault);
        return 1;
    }
    if (!o->quiet)
        printf("%s: the plan of %s is right: %u steps, %u buffers, an arena of %s\n", file->file,
               plan->graph->name, plan->end, plan->buffers,
               size_text(arena, plan->arena[SPACE_ARENA]));
    return 0;
}
