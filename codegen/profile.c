/* Profiles of machines as files: what --calibrate writes and --profile reads. A link between ranks
 * is measured where the ranks are: by a program that has the rates of the machine in it. */
#include "codegen/internal.h"
#include "codegen/plan_json.h"
#include "codegen/template.h"

#include <math.h>
#include <string.h>

static const char VERSION_KEY[] = "gplan_profile";
enum { VERSION = 1 };

enum { MACHINE = 5, FIELDS = 8 }; /* those after the machine's are of a link, and optional */
typedef struct {
    const char *key;
    double *value;
} Field;

static void list_fields(Profile *p, Field field[FIELDS])
{
    field[0] = (Field){"product_flops", &p->product_flops};
    field[1] = (Field){"conv_flops", &p->conv_flops};
    field[2] = (Field){"loop_flops", &p->loop_flops};
    field[3] = (Field){"bytes", &p->bytes};
    field[4] = (Field){"start", &p->start};
    field[5] = (Field){"link_bytes", &p->link_bytes};
    field[6] = (Field){"link_start", &p->link_start};
    field[7] = (Field){"link_core", &p->link_core};
}

/* The object, with so many of its fields, and open. */
static Out begin_text(Arena *arena, const Profile *profile, int fields)
{
    Profile copy = *profile;
    Field field[FIELDS];
    Out o = out_new(arena);
    list_fields(&copy, field);
    out(&o, "{\n  \"%s\": %d", VERSION_KEY, VERSION);
    for (int i = 0; i < fields; i++)
        out(&o, ",\n  \"%s\": %.4g", field[i].key, *field[i].value);
    return o;
}

Text profile_text(Arena *arena, const Profile *profile)
{
    Out o = begin_text(arena, profile, MACHINE);
    out(&o, "\n}\n");
    return out_done(&o);
}

Text profile_link_program(Arena *arena, const Profile *profile, const char *name)
{
    static const char file[] = "link.c";
    Template t = template_new(arena, "link", "LINK");
    Out machine = out_new(arena), text = begin_text(arena, profile, MACHINE), o = out_new(arena),
        body = out_new(arena), title = out_new(arena);
    out_string(&machine, text.at);
    template_text(&t, "PROFILE", machine.at);
    out_comment(&title, name);
    template_text(&t, "HEADER_NAME", title.at);
    template_text(&t, "INCLUDES", "");
    template_text(&t, "TYPES", "");
    template_text(&t, "KERNELS", "");
    template_write(&t, file, &body); /* once without the runtime, to see what it needs */
    const Inlined runtime = inline_alone(arena, t.need.at, t.need.count, body.at);
    template_text(&t, "INCLUDES", runtime.system);
    template_text(&t, "TYPES", runtime.types);
    template_text(&t, "KERNELS", runtime.kernels);
    template_write(&t, file, &o);
    return out_done(&o);
}

static bool is_known(const Field *field, const char *key)
{
    bool known = strcmp(key, VERSION_KEY) == 0;
    for (int i = 0; i < FIELDS; i++)
        known |= strcmp(key, field[i].key) == 0;
    return known;
}

static const char *read_fields(Arena *arena, json_t *json, Profile *profile)
{
    const json_t *version = json_object_get(json, VERSION_KEY);
    Field field[FIELDS];
    list_fields(profile, field);
    if (!json_is_integer(version))
        return arena_printf(arena, "this is no profile: it has no number %s", VERSION_KEY);
    if (json_integer_value(version) != VERSION)
        return arena_printf(arena, "%s is %lld, but this gplan knows %d", VERSION_KEY,
                            (long long)json_integer_value(version), VERSION);
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at))
        if (!is_known(field, json_object_iter_key(at)))
            return arena_printf(arena, "%s means nothing in a profile", json_object_iter_key(at));
    for (int i = 0; i < FIELDS; i++) {
        const json_t *number = json_object_get(json, field[i].key);
        double value = json_number_value(number);
        if (!number && i >= MACHINE)
            continue;
        if (!json_is_number(number))
            return arena_printf(arena, "%s is missing, or no number", field[i].key);
        if (!(value > 0) || !isfinite(value))
            return arena_printf(arena, "%s must be above 0, not %g", field[i].key, value);
        if (field[i].value == &profile->link_core && value > 1)
            return arena_printf(arena, "%s is a share, at most 1, not %g", field[i].key, value);
        *field[i].value = value;
    }
    return NULL;
}

const char *profile_read(Arena *arena, Text file, Profile *profile)
{
    json_error_t where;
    json_begin();
    json_t *json = json_loadb(file.text, file.length, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return arena_printf(arena, "this is no JSON: %s, line %d, column %d", where.text,
                            where.line, where.column);
    const char *wrong = read_fields(arena, json, profile);
    json_decref(json);
    return wrong;
}
