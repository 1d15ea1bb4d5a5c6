#include "tests/fuzz/door.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 20000 };

unsigned dice_below(Dice *dice, unsigned n)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = dice->state ^ dice->state >> 29;
    return n ? (unsigned)(x >> 8) % n : 0;
}

/* A value and what holds it: an object by a key, a list by an index. */
typedef struct {
    json_t *holder, *value;
    const char *key;
    size_t index;
} Slot;

typedef struct {
    Slot *at;
    size_t count;
} Slots;

static void collect(Slots *slots, json_t *json)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(json))
        json_object_foreach(json, key, value)
        {
            if (slots->count == MOST_NODES)
                return;
            slots->at[slots->count++] = (Slot){json, value, key, 0};
            collect(slots, value);
        }
    else if (json_is_array(json))
        json_array_foreach(json, i, value)
        {
            if (slots->count == MOST_NODES)
                return;
            slots->at[slots->count++] = (Slot){json, value, NULL, i};
            collect(slots, value);
        }
}

static void put(const Slot *slot, json_t *value) /* takes it over */
{
    if (slot->key)
        json_object_set_new(slot->holder, slot->key, value);
    else
        json_array_set_new(slot->holder, slot->index, value);
}

static json_t *other_number(json_t *old, Dice *dice)
{
    static const json_int_t odd[] = {
        0,    1,     -1,        2,          7,         64,        255,       256,
        4096, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, INT64_MIN, 1ll << 53, 1ll << 62};
    json_int_t now = json_integer_value(old);
    switch (dice_below(dice, 6)) {
    case 0:
        return json_integer((json_int_t)((uint64_t)now + 1));
    case 1:
        return json_integer((json_int_t)((uint64_t)now - 1));
    case 2:
        return json_integer((json_int_t)((uint64_t)now * 2));
    case 3:
        return json_integer((json_int_t)(0 - (uint64_t)now));
    case 4:
        return json_real(dice_below(dice, 2) ? 1e300 : 0.5);
    default:
        return json_integer(odd[dice_below(dice, sizeof odd / sizeof *odd)]);
    }
}

static void change(const Slots *slots, Dice *dice)
{
    const Slot *slot = &slots->at[dice_below(dice, (unsigned)slots->count)];
    const Slot *other = &slots->at[dice_below(dice, (unsigned)slots->count)];
    for (int tries = 0; tries < 20 && json_typeof(other->value) != json_typeof(slot->value);
         tries++)
        other = &slots->at[dice_below(dice, (unsigned)slots->count)];
    switch (dice_below(dice, json_is_number(slot->value) ? 12 : 8)) {
    case 0:
        if (slot->key)
            json_object_del(slot->holder, slot->key);
        else
            json_array_remove(slot->holder, slot->index);
        break;
    case 1:
        if (json_is_array(slot->holder))
            json_array_insert_new(slot->holder, slot->index, json_deep_copy(other->value));
        else
            json_object_set_new(slot->holder, "name", json_deep_copy(other->value));
        break;
    case 2:
        put(slot, dice_below(dice, 2) ? json_null() : json_true());
        break;
    case 3:
        put(slot, dice_below(dice, 2) ? json_array() : json_object());
        break;
    case 4:
        put(slot, json_string(dice_below(dice, 2) ? "" : "x"));
        break;
    case 5:
    case 6:
    case 7:
        put(slot, json_deep_copy(other->value));
        break;
    default:
        put(slot, other_number(slot->value, dice));
    }
}

size_t json_change(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    Dice dice = {seed};
    json_t *json = dice_below(&dice, 6) ? json_loadb((const char *)data, size, 0, NULL) : NULL;
    Slots slots = {.at = json ? malloc(MOST_NODES * sizeof(Slot)) : NULL};
    for (unsigned changes = 1 + dice_below(&dice, 2); json && changes > 0; changes--) {
        slots.count = 0; /* the change before left some that are gone */
        collect(&slots, json);
        if (slots.count > 0)
            change(&slots, &dice);
    }
    free(slots.at);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    size_t length = text ? strlen(text) : 0;
    json_decref(json);
    if (text && length <= most)
        memcpy(data, text, length);
    bool good = text && length <= most;
    free(text);
    return good ? length : LLVMFuzzerMutate(data, size, most);
}
