/* The names of places: a program says AT(wte) where the arena is meant to be read at byte
 * 1646821376, and AT(attention_0_wq(i)) for what has a constant stride from layer
 * to layer.
 *
 * A name is that of the value, without what tells layers apart; where one value is at several
 * places, or several values have one name, the later ones are numbered. */
#include "codegen/internal.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 100 };

const char *place_word(Arena *arena, const char *name)
{
    char *word = arena_printf(arena, "%s%s", isdigit((unsigned char)*name) ? "v" : "", name);
    size_t length = 0;
    for (const char *at = word; *at; at++) {
        bool plain = isalnum((unsigned char)*at) && (unsigned char)*at < 0x80;
        if (plain || (length && word[length - 1] != '_'))
            word[length++] = plain ? *at : '_';
    }
    while (length && word[length - 1] == '_')
        length--;
    word[length] = 0;
    return length ? word : "v";
}

/* wanted, or wanted_2 and so on. */
static const char *claim(Places *p, const char *wanted)
{
    const char *name = wanted;
    uint32_t next = names_find(p->taken, wanted);
    for (; next != UINT32_MAX; next++) {
        name = arena_printf(p->arena, "%s_%u", wanted, next);
        if (names_find(p->taken, name) == UINT32_MAX)
            break;
    }
    *names_at(p->taken, name) = 2;
    *names_at(p->taken, wanted) = next == UINT32_MAX ? 2 : next + 1;
    return name;
}

const char *place_name(Places *p, const char *wanted, Place place)
{
    if (!p->known) {
        p->known = names_new(p->arena);
        p->taken = names_new(p->arena);
        p->wanted = names_new(p->arena);
    }
    const char *key = arena_printf(p->arena, "%s %s", wanted, place.address);
    uint32_t known = names_find(p->known, key);
    if (known == UINT32_MAX) {
        known = (uint32_t)p->place.count;
        *names_at(p->known, key) = known;
        place.name = claim(p, wanted);
        place.next = names_find(p->wanted, wanted);
        *names_at(p->wanted, wanted) = known;
        ARRAY_PUSH(p->arena, &p->place, place);
    }
    p->place.at[known].used = true;
    return p->place.at[known].name;
}

const char *place_of_layer(Places *p, const char *wanted, uint64_t offset, int64_t layer)
{
    Id i = p->wanted ? names_find(p->wanted, wanted) : NONE;
    for (; i != NONE; i = p->place.at[i].next) {
        Place *place = &p->place.at[i];
        if (place->step && place->first + place->step * layer == (int64_t)offset) {
            place->used = true;
            return arena_printf(p->arena, "AT(%s(%lld))", place->name, (long long)layer);
        }
    }
    return NULL;
}

void places_write(Places *p, Out *o)
{
    size_t length = o->length;
    for (size_t i = 0; i < p->place.count; i++) {
        Place *place = &p->place.at[i];
        const char *index = place->moves ? "(i)" : "";
        bool fits = strlen("#define AT_ ()") + strlen(place->name) + strlen(index) +
                        strlen(place->address) <
                    WIDTH;
        if (place->used && !place->written)
            out(o, "#define AT_%s%s %s(%s)\n", place->name, index, fits ? "" : "\\\n    ",
                place->address);
        place->written |= place->used;
    }
    out(o, o->length > length ? "\n" : "");
}
