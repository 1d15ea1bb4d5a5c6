/* A parameter file, read by an emitted program: net.c, of loader.g. A file that is refused changes
 * nothing; one that is taken can be saved and taken again, and leaves the same bytes.
 *
 * An input is a whole file. The mutator changes its header as JSON and sets its length right. */
#define _GNU_SOURCE
#include "net.h"
#include "tests/fuzz/door.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char *arena, *before;
static net model;

static void begin(void)
{
    static char folder[] = "/tmp/gplan_fuzz.XXXXXX";
    size_t bytes = (NET_ARENA_BYTES + NET_ARENA_ALIGN - 1) / NET_ARENA_ALIGN * NET_ARENA_ALIGN;
    arena = aligned_alloc(NET_ARENA_ALIGN, bytes);
    before = malloc(bytes);
    if (!arena || !before || !mkdtemp(folder) || chdir(folder) != 0 ||
        net_init(&model, arena, NET_ARENA_BYTES) != NET_OK)
        door_fail("the model cannot be set up");
    memset(arena, 0, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!arena)
        begin();
    net_reset(&model, 1);
    memcpy(before, arena, NET_ARENA_BYTES);
    uint64_t step = model.step, seed = model.seed;
    if (net_load(&model, door_file(data, size)) != NET_OK) {
        if (memcmp(before, arena, NET_ARENA_BYTES) != 0 || model.step != step || model.seed != seed)
            door_fail("a file that was refused has changed the model");
        if (!*net_error(&model))
            door_fail("a file was refused without a word");
        return 0;
    }
    door_accept(data, size);
    memcpy(before, arena, NET_ARENA_BYTES);
    step = model.step, seed = model.seed;
    if (net_save(&model, "again") != NET_OK)
        door_fail("what was loaded cannot be saved");
    net_reset(&model, 2);
    if (net_load(&model, "again") != NET_OK || model.step != step || model.seed != seed ||
        memcmp(before, arena, NET_ARENA_BYTES) != 0)
        door_fail("what was saved loads as something else");
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t length = 0;
    Dice dice = {seed};
    for (int i = 0; size >= 8 && i < 8; i++)
        length |= (uint64_t)data[i] << (8 * i);
    if (size < 8 || length > size - 8 || dice_below(&dice, 8) == 0)
        return LLVMFuzzerMutate(data, size, most);
    size_t rest = size - 8 - (size_t)length, room = most - 8 - rest;
    uint8_t *tail = malloc(rest + 1), *head = malloc(room + 1);
    memcpy(tail, data + 8 + length, rest);
    memcpy(head, data + 8, (size_t)length);
    length = dice_below(&dice, 3) ? json_change(head, (size_t)length, room, seed)
                                  : LLVMFuzzerMutate(head, (size_t)length, room);
    memcpy(data + 8, head, (size_t)length);
    memcpy(data + 8 + length, tail, rest);
    for (int i = 0; i < 8; i++)
        data[i] = (uint8_t)(length >> (8 * i));
    free(head);
    free(tail);
    return 8 + (size_t)length + rest;
}
