/* Profiles of machines as files: what --calibrate writes and --profile reads. */
#include "codegen/plan_json.h"

#include <math.h>
#include <string.h>

static const char VERSION_KEY[] = "gplan_profile";
enum { VERSION = 1 };

enum { FIELDS = 5 };
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
}

Text profile_text(Arena *arena, const Profile *profile)
{
    Profile copy = *profile;
    Field field[FIELDS];
    Out o = out_new(arena);
    list_fields(&copy, field);
    out(&o, "{\n  \"%s\": %d", VERSION_KEY, VERSION);
    for (int i = 0; i < FIELDS; i++)
        out(&o, ",\n  \"%s\": %.4g", field[i].key, *field[i].value);
    out(&o, "\n}\n");
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
        if (!json_is_number(number))
            return arena_printf(arena, "%s is missing, or no number", field[i].key);
        if (!(value > 0) || !isfinite(value))
            return arena_printf(arena, "%s must be above 0, not %g", field[i].key, value);
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
