/* A saved file takes the place of another: its mode and the symlinks to it stay, whatever fails
 * leaves the old one and nothing else, and one that is changed while it is read is refused.
 *
 * flags: -Wl,--wrap=open,--wrap=write,--wrap=fsync,--wrap=fchmod,--wrap=close
 * flags: -Wl,--wrap=rename,--wrap=pread
 */
#define _DEFAULT_SOURCE
#include "replace.h"
#include "expect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- Calls that fail when they are told to ----------------------------------------------------
 */

static const char *faulty = ""; /* the function */
static int countdown;           /* calls of it until one fails */
static void (*before_read)(void);
static int files; /* that are open */

static int fails(const char *function)
{
    return strcmp(faulty, function) == 0 && --countdown == 0;
}

#define FAULTY(type, name, parameters, arguments) \
    type __real_##name parameters;                \
    type __wrap_##name parameters;                \
    type __wrap_##name parameters                 \
    {                                             \
        if (fails(#name)) {                       \
            errno = EIO;                          \
            return -1;                            \
        }                                         \
        return __real_##name arguments;           \
    }
FAULTY(ssize_t, write, (int file, const void *data, size_t bytes), (file, data, bytes))
FAULTY(int, fsync, (int file), (file))
FAULTY(int, fchmod, (int file, mode_t mode), (file, mode))
FAULTY(int, rename, (const char *from, const char *to), (from, to))

int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) /* the file is closed in any case */
{
    const int closed = __real_close(file);
    files--;
    errno = EIO;
    return fails("close") ? -1 : closed;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (flags & O_CREAT)
        EXPECT((flags & (O_EXCL | O_NOFOLLOW | O_CLOEXEC)) == (O_EXCL | O_NOFOLLOW | O_CLOEXEC));
    EXPECT(flags & O_CLOEXEC);
    if (flags & O_CREAT && fails("open")) {
        errno = EIO;
        return -1;
    }
    const int file = __real_open(path, flags, mode);
    files += file >= 0;
    return file;
}

ssize_t __real_pread(int file, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void *data, size_t bytes, off_t offset)
{
    if (fails("pread"))
        before_read();
    return __real_pread(file, data, bytes > 700 ? 700 : bytes,
                        offset); /* less than was asked for */
}

/* ---- Saving -----------------------------------------------------------------------------------
 */

static int entries(const char *folder)
{
    int count = 0;
    DIR *all = opendir(folder);
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_mode & 0777 : 0;
}

static int is_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static void modes(replace *m)
{
    umask(022);
    EXPECT(replace_save(m, "new") == REPLACE_OK && mode_of("new") == 0644);
    static const mode_t kept[] = {0600, 0640, 0666, 0755, 0400};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        EXPECT(chmod("new", kept[i]) == 0 && replace_save(m, "new") == REPLACE_OK &&
               mode_of("new") == kept[i]);
    umask(077);
    EXPECT(replace_save(m, "other") == REPLACE_OK && mode_of("other") == 0600);
    umask(022);
}

static void links(replace *m)
{
    EXPECT(mkdir("deep", 0777) == 0 && symlink("deep/file", "near") == 0 &&
           symlink("../near", "deep/back") == 0 && symlink("deep", "way") == 0);
    EXPECT(replace_save(m, "near") == REPLACE_OK); /* to nothing yet */
    EXPECT(is_link("near") && !is_link("deep/file") && replace_load(m, "deep/file") == REPLACE_OK);
    EXPECT(truncate("deep/file", 3) == 0 && replace_load(m, "near") == REPLACE_EFORMAT);
    EXPECT(replace_save(m, "way/back") == REPLACE_OK);
    EXPECT(is_link("deep/back") && is_link("near") && replace_load(m, "deep/file") == REPLACE_OK);
    char folder[2000], path[4096];
    snprintf(path, sizeof path, "%s/deep/file", getcwd(folder, sizeof folder));
    EXPECT(symlink(path, "far") == 0 && replace_save(m, "far") == REPLACE_OK && is_link("far"));
    EXPECT(symlink("round", "round") == 0 && replace_save(m, "round") == REPLACE_EFILE);
    EXPECT(errno == ELOOP && is_link("round"));
    EXPECT(entries("deep") == 4);
    EXPECT(replace_save(m, "deep") == REPLACE_EFILE && errno == EISDIR);
    EXPECT(replace_save(m, "deep/") == REPLACE_EFILE && errno == EISDIR);
    EXPECT(mkfifo("pipe", 0666) == 0 && replace_save(m, "pipe") == REPLACE_EFILE);
    struct stat status;
    EXPECT(stat("pipe", &status) == 0 && S_ISFIFO(status.st_mode));
    EXPECT(entries("deep") == 4);
}

/* Names that somebody took before us are left alone, and so is what they point at. */
static void planted(replace *m)
{
    char name[200];
    EXPECT(mkdir("trap", 0777) == 0 && replace_save(m, "victim") == REPLACE_OK);
    EXPECT(chmod("victim", 0600) == 0 && truncate("victim", 11) == 0);
    snprintf(name, sizeof name, "trap/file.%ld.tmp", (long)getpid());
    EXPECT(symlink("../victim", name) == 0);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "trap/file.%ld.%d.tmp", (long)getpid(), i);
        EXPECT(symlink("../victim", name) == 0);
    }
    struct stat status;
    EXPECT(replace_save(m, "trap/file") == REPLACE_OK && !is_link("trap/file"));
    EXPECT(stat("victim", &status) == 0 && status.st_size == 11);
    EXPECT(replace_load(m, "trap/file") == REPLACE_OK && entries("trap") == 7);
    char longest[256]; /* a name that leaves no room for more */
    memset(longest, 'n', 255);
    longest[255] = 0;
    EXPECT(replace_save(m, longest) == REPLACE_OK && replace_load(m, longest) == REPLACE_OK);
    char longer[5000];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    EXPECT(replace_save(m, longer) == REPLACE_EFILE && errno == ENAMETOOLONG);
    EXPECT_TEXT(replace_error(m), "cannot be written");
}

/* Each call on the way, the first, the second, ...: an error, the old file, and no other. */
static void faults(replace *m)
{
    static const char *const function[] = {"open", "fchmod", "write", "fsync", "close", "rename"};
    EXPECT(mkdir("disk", 0777) == 0 && replace_save(m, "disk/file") == REPLACE_OK);
    EXPECT(chmod("disk/file", 0612) == 0); /* so that it is set again: umask takes a bit */
    float *w = (float *)(void *)m->arena;
    for (size_t f = 0; f < sizeof function / sizeof *function; f++) {
        int failed = 0;
        for (int k = 1; k < 100; k++) {
            float kept = w[0];
            w[0] += 1;
            faulty = function[f];
            countdown = k;
            const int code = replace_save(m, "disk/file");
            faulty = "";
            if (countdown > 0)
                break; /* it has no k calls */
            failed += code != REPLACE_OK;
            EXPECT(code == REPLACE_OK || (code == REPLACE_EFILE && errno == EIO));
            EXPECT((code == REPLACE_OK) == (replace_error(m)[0] == 0));
            if (code != REPLACE_OK)
                EXPECT_TEXT(replace_error(m), "disk/file: cannot be written: ");
            EXPECT(entries("disk") == 3 && mode_of("disk/file") == 0612);
            const float mine = w[0];
            EXPECT(replace_load(m, "disk/file") == REPLACE_OK);
            EXPECT(w[0] == (code == REPLACE_OK ? mine : kept));
        }
        EXPECT(failed > 0);
    }
}

/* ---- Loading ----------------------------------------------------------------------------------
 */

static void cut(void)
{
    EXPECT(truncate("read", 30) == 0);
}

static void write_byte(off_t at, char byte)
{
    const int file = __real_open("read", O_WRONLY);
    EXPECT(pwrite(file, &byte, 1, at) == 1);
    __real_close(file);
}

static void change_header(void)
{
    write_byte(12, 'X'); /* the first name */
}

static void change_data(void)
{
    struct stat status;
    EXPECT(stat("read", &status) == 0);
    write_byte(status.st_size - 1, 'X');
}

/* Another save that ends meanwhile leaves the file that is being read as it is. */
static replace *saver;
static void save_anew(void)
{
    EXPECT(replace_save(saver, "read") == REPLACE_OK);
}

static void changes(replace *m)
{
    static void (*const change[])(void) = {cut, change_header, change_data, save_anew};
    for (size_t c = 0; c < sizeof change / sizeof *change; c++)
        for (int k = 1;; k++) {
            const struct timespec past[2] = {{1000000000, 0}, {1000000000, 0}};
            EXPECT(replace_save(m, "read") == REPLACE_OK &&
                   utimensat(AT_FDCWD, "read", past, 0) == 0);
            faulty = "pread";
            countdown = k;
            before_read = change[c];
            const int code = replace_load(m, "read");
            faulty = "";
            if (countdown > 0)
                break; /* so many reads there are not */
            EXPECT((code == REPLACE_OK) == (change[c] == save_anew));
            EXPECT((code == REPLACE_OK) == (replace_error(m)[0] == 0));
        }
}

int main(void)
{
    START(replace, m, REPLACE_ARENA_BYTES)
    replace_reset(&m, 1);
    saver = &m;
    EXPECT(mkdir("replaced", 0777) == 0 && chdir("replaced") == 0);
    modes(&m);
    links(&m);
    planted(&m);
    faults(&m);
    changes(&m);
    EXPECT(files == 0);
    free(m_arena);
    FINISH();
}
