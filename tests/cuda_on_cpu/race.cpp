/* See race.h. */
#include "race.h"

#include "barriers.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <set>
#include <utility>
#include <vector>

enum { WARP = 32, GRANULE = 4 }; /* bytes that are watched as one */

/* Who touched a place, and how many barriers had been passed by then. */
struct Mark {
    unsigned thread, epoch, warp_epoch;
};

struct Place {
    Mark writer, reader[2]; /* of the readers the first, and one of another thread */
};

struct Watched {
    const char *at, *name;
    size_t bytes;
    std::vector<Place> place;
};

static struct {
    std::vector<Watched> array;
    std::vector<unsigned> warp_epoch;
    unsigned epoch;
    const char *low, *high; /* all arrays lie between */
} race;

static std::set<std::pair<const char *, int>> passed; /* barriers, by place */

void race_block(unsigned threads)
{
    race.array.clear();
    race.warp_epoch.assign((threads + WARP - 1) / WARP, 0);
    race.epoch = 0;
    race.low = race.high = NULL;
}

void race_array(const void *at, size_t bytes, const char *name)
{
    const Mark none = {NOBODY, 0, 0};
    const char *from = (const char *)at;
    race.array.push_back(
        Watched{from, name, bytes,
                std::vector<Place>((bytes + GRANULE - 1) / GRANULE, Place{none, {none, none}})});
    race.low = race.low && race.low < from ? race.low : from;
    race.high = race.high > from + bytes ? race.high : from + bytes;
}

void race_barrier()
{
    race.epoch++;
}

void race_warp_barrier(unsigned warp)
{
    race.warp_epoch[warp]++;
}

void race_passed(const char *file, int line)
{
    passed.insert({file, line});
}

extern "C" void barriers_passed(void (*visit)(void *to, const char *file, int line), void *to)
{
    for (const auto &site : passed)
        visit(to, site.first, site.second);
    passed.clear();
}

/* Whether the mark is another thread's, with no barrier since. */
static bool is_concurrent(const Mark &m, unsigned self)
{
    if (m.thread == NOBODY || m.thread == self || m.epoch != race.epoch)
        return false;
    return m.thread / WARP != self / WARP || m.warp_epoch == race.warp_epoch[self / WARP];
}

static void report(const Watched &w, size_t byte, const Mark &m, unsigned self, const char *how)
{
    char text[200];
    snprintf(text, sizeof text,
             "threads %u and %u %s byte %zu of the shared array %s, with no barrier between",
             m.thread, self, how, byte, w.name);
    device_fault(text);
}

static void touch_place(const Watched &w, Place &p, size_t byte, unsigned self, bool writes)
{
    const Mark now = {self, race.epoch, race.warp_epoch[self / WARP]};
    if (is_concurrent(p.writer, self))
        report(w, byte, p.writer, self, writes ? "both write" : "write and read");
    if (!writes) {
        const Mark first = p.reader[0];
        if (first.thread == NOBODY || first.epoch != race.epoch || first.thread == self)
            p.reader[0] = now;
        else if (p.reader[1].thread == NOBODY || p.reader[1].epoch != race.epoch ||
                 first.thread / WARP != self / WARP)
            p.reader[1] = now;
        return;
    }
    for (const Mark &reader : p.reader)
        if (is_concurrent(reader, self))
            report(w, byte, reader, self, "read and write");
    p.writer = now;
}

static void touch(const void *address, size_t bytes, bool writes)
{
    const char *at = (const char *)address;
    if (at < race.low || at >= race.high)
        return;
    const unsigned self = device_thread();
    for (Watched &w : race.array)
        if (at >= w.at && at < w.at + w.bytes && self != NOBODY)
            for (size_t i = (size_t)(at - w.at) / GRANULE;
                 i * GRANULE < (size_t)(at - w.at) + bytes && i < w.place.size(); i++)
                touch_place(w, w.place[i], i * GRANULE, self, writes);
}

/* ---- What the compiler calls ---------------------------------------------------------------- */

#define HOOKS(bytes)                                        \
    extern "C" void __tsan_read##bytes(void *at)            \
    {                                                       \
        touch(at, bytes, false);                            \
    }                                                       \
    extern "C" void __tsan_write##bytes(void *at)           \
    {                                                       \
        touch(at, bytes, true);                             \
    }                                                       \
    extern "C" void __tsan_unaligned_read##bytes(void *at)  \
    {                                                       \
        touch(at, bytes, false);                            \
    }                                                       \
    extern "C" void __tsan_unaligned_write##bytes(void *at) \
    {                                                       \
        touch(at, bytes, true);                             \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" void __tsan_read_range(void *at, size_t bytes)
{
    touch(at, bytes, false);
}
extern "C" void __tsan_write_range(void *at, size_t bytes)
{
    touch(at, bytes, true);
}
/* clang's own names for these. */
extern "C" void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false);
    touch(to, bytes, true);
    return memcpy(to, from, bytes);
}
extern "C" void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false);
    touch(to, bytes, true);
    return memmove(to, from, bytes);
}
extern "C" void *__tsan_memset(void *to, int byte, size_t bytes)
{
    touch(to, bytes, true);
    return memset(to, byte, bytes);
}
extern "C" void __tsan_init()
{
}
extern "C" void __tsan_func_entry(void *)
{
}
extern "C" void __tsan_func_exit(void *)
{
}
extern "C" void __tsan_vptr_update(void **, void *)
{
}
extern "C" void __tsan_vptr_read(void **)
{
}
