/* Parameter files: what is saved loads again; what is wrong is named and changes nothing. */
#define _DEFAULT_SOURCE
#include "files.h"
#include "expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const good_header =
    "{\"__metadata__\":{\"format\":\"pt\",\"odd\":\"a } ] \\\" b\"},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]},"
    "\"more\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]},"
    "\"second.b\" : { \"shape\" : [ 5 ] , \"dtype\":\"F32\",\n\"data_offsets\":[56,76]},"
    "\"second.\\u0077\":{\"dtype\":\"F32\",\"shape\":[4,5],\"data_offsets\":[76,156]}}";
enum { GOOD_DATA = 156 };

static const files_tensor *find(const char *name)
{
    size_t count;
    const files_tensor *t = files_tensors(&count);
    while (strcmp(t->name, name) != 0)
        t++;
    return t;
}

/* Writes a file of this header and so many bytes of data: 0, 1, 2, ... */
static void make(const char *header, size_t data)
{
    FILE *file = fopen("made.safetensors", "wb");
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        putc((int)(length >> 8 * i & 255), file);
    fputs(header, file);
    for (size_t i = 0; i < data; i++)
        putc((int)(i & 63), file);
    fclose(file);
}

static char *replace(const char *text, const char *from, const char *to)
{
    static char out[2048];
    const char *at = strstr(text, from);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

/* The file is refused with this code and a message with this part; no parameter changes. */
static void refused(files *m, const char *path, int code, const char *part)
{
    static unsigned char before[FILES_ARENA_BYTES];
    memcpy(before, m->arena, sizeof before);
    int got = files_load(m, path);
    if (got != code)
        printf("%s: code %d, not %d (%s)\n", part, got, code, files_error(m));
    EXPECT(got == code);
    EXPECT_TEXT(files_error(m), part);
    EXPECT(memcmp(before, m->arena, sizeof before) == 0);
}

static void wrong_files(files *m)
{
    refused(m, "nowhere.safetensors", FILES_EFILE, "nowhere.safetensors");
    FILE *file = fopen("short.safetensors", "wb");
    fputs("abc", file);
    fclose(file);
    refused(m, "short.safetensors", FILES_EFORMAT, "short.safetensors");
    make(good_header, GOOD_DATA - 1);
    refused(m, "made.safetensors", FILES_EFORMAT, "second.w");
    make(replace(good_header, "[3,4]", "[4,3]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_ETENSOR, "w: is F32[4, 3] in the file, F32[3, 4]");
    make(replace(good_header, "F32", "F16"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_ETENSOR, "w: is F16[3, 4] in the file");
    make(replace(good_header, "second.b", "second.c"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_ETENSOR, "second.b: is not in made.safetensors");
    make(replace(good_header, "\"more\"", "\"w\""), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "w: occurs twice");
    make(replace(good_header, "[0,48]", "[0,44]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "w: its place");
    make(replace(good_header, "[0,48]", "[48,0]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "w: its place");
    make(replace(good_header, "[76,156]", "[18446744073709551535,18446744073709551615]"),
         GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "safetensors");
    static const char *const broken[] = {"",
                                         "{",
                                         "{\"w",
                                         "{\"w\":",
                                         "[]",
                                         "{\"w\":{\"dtype\":}}",
                                         "{\"w\":{\"shape\":[3,4",
                                         "{\"__metadata__\":{"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        make(broken[i], 0);
        refused(m, "made.safetensors", FILES_EFORMAT, "made.safetensors");
    }
    for (size_t cut = 0; cut < strlen(good_header); cut++) { /* a header that ends anywhere */
        char header[2048];
        snprintf(header, sizeof header, "%.*s", (int)cut, good_header);
        make(header, GOOD_DATA);
        EXPECT(files_load(m, "made.safetensors") != FILES_OK);
    }
}

/* So many tensors of no interest, of 4 bytes each, the last ones first, and then ours. */
static void make_many(int count, int at, const char *name, int begin)
{
    static char header[200000];
    int length = 0;
    for (int i = count - 1; i >= 0; i--) {
        char own[16];
        snprintf(own, sizeof own, "n%d", i);
        length += snprintf(header + length, sizeof header - (size_t)length,
                           "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                           length ? "," : "{", i == at ? name : own,
                           GOOD_DATA + (i == at ? begin : 4 * i),
                           GOOD_DATA + (i == at ? begin : 4 * i) + 4);
    }
    snprintf(header + length, sizeof header - (size_t)length, ",%s", good_header + 1);
    make(header, GOOD_DATA + 4 * (size_t)count);
}

/* Bytes that are of no tensor or of two, names that stand twice, in a file of any order. */
static void wrong_places(files *m)
{
    make(good_header, GOOD_DATA + 1);
    refused(m, "made.safetensors", FILES_EFORMAT, "1 bytes follow the last tensor");
    make(replace(good_header, "[48,56]", "[48,55]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "leave some out");
    make(replace(good_header, "[48,56]", "[40,56]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "share bytes");
    make(replace(good_header, "[48,56]", "[0,48]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "share bytes");
    make(replace(good_header, "[48,56]", "[56,48]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "more: its place");
    make(replace(good_header, "[48,56]", "[48,9999]"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "more ends after it");
    make(replace(good_header, "\"shape\":[],", ""), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "more: the file lacks");
    make(replace(good_header, "\"I64\"", "\"I64\",\"dtype\":\"I64\""), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "occurs twice");
    make(replace(good_header, "\"more\"", "\"__metadata__\":{},\"more\""), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "a name occurs twice");
    make(replace(good_header, "[76,156]}}", "[76,156]}}x"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "follows its header");
    make(replace(good_header, "[76,156]}}", "[76,156]}} {}"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "follows its header");
    make(replace(good_header, "\\u0077", "\\u00zz"), GOOD_DATA);
    refused(m, "made.safetensors", FILES_EFORMAT, "four digits");
    make(replace(good_header, "\"more\"", "\"w\\u0000\""), GOOD_DATA); /* not ours */
    EXPECT(files_load(m, "made.safetensors") == FILES_OK);
    static const int counts[] = {1, 2, 251, 252, 253, 255, 256, 257, 508, 509, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int n = counts[i];
        make_many(n, -1, "", 0);
        EXPECT(files_load(m, "made.safetensors") == FILES_OK);
        for (int k = 0; k < n; k += n / 3 + 1) {
            make_many(n, k, "more", 4 * k);
            refused(m, "made.safetensors", FILES_EFORMAT, "a name occurs twice");
            make_many(n, k, "own", 4 * k - 2);
            refused(m, "made.safetensors", FILES_EFORMAT, "share bytes");
            make_many(n, k, "own", k > 0 ? 0 : -4);
            refused(m, "made.safetensors", FILES_EFORMAT, "share bytes");
        }
    }
}

/* What is no file is refused at once, whoever might write to it. */
static void no_files(files *m)
{
    unlink("pipe");
    EXPECT(mkfifo("pipe", 0666) == 0 && (mkdir("folder", 0777) == 0 || errno == EEXIST));
    alarm(20); /* ends a program that waits */
    refused(m, "pipe", FILES_EFILE, "pipe: is no regular file");
    refused(m, "/dev/zero", FILES_EFILE, "/dev/zero: is no regular file");
    refused(m, "folder", FILES_EFILE, "folder: is a folder");
    refused(m, "", FILES_EFILE, "cannot be opened");
    alarm(0);
}

static void a_file_of_another_tool(files *m)
{
    make(good_header, GOOD_DATA);
    EXPECT(files_load(m, "made.safetensors") == FILES_OK);
    const unsigned char *w = m->arena + find("second.w")->offset;
    const unsigned char *b = m->arena + find("second.b")->offset;
    EXPECT(w[0] == (76 & 63) && w[79] == (155 & 63) && b[0] == 56 && b[19] == (75 & 63));
}

static void saves_and_loads(files *m)
{
    files_reset(m, 3);
    EXPECT(files_save(m, "saved.safetensors") == FILES_OK);
    float kept[12];
    float *w = (float *)(void *)(m->arena + find("w")->offset);
    memcpy(kept, w, sizeof kept);
    files_reset(m, 4);
    EXPECT(memcmp(kept, w, sizeof kept) != 0);
    EXPECT(files_load(m, "saved.safetensors") == FILES_OK);
    EXPECT(memcmp(kept, w, sizeof kept) == 0);
    EXPECT(files_error(m)[0] == 0);
    EXPECT(files_save(m, "no/such/folder.safetensors") == FILES_EFILE && errno == ENOENT);
    EXPECT_TEXT(files_error(m), "no/such/folder.safetensors: cannot be written: ");
    EXPECT_TEXT(files_strerror(FILES_EFILE), "file");
}

/* A disk that is full in the middle: the old file stays, and no other is left. */
static void a_full_disk(files *m)
{
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 300;
    setrlimit(RLIMIT_FSIZE, &limit);
    files_reset(m, 5);
    EXPECT(files_save(m, "saved.safetensors") == FILES_EFILE && errno == EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT(system("ls *.tmp >/dev/null 2>&1") != 0);
    EXPECT(files_load(m, "saved.safetensors") == FILES_OK);
}

/* Killed at any moment: whoever reads finds a whole file. */
static void killed_while_saving(files *m)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (uint64_t seed = 0;; seed++) {
                files_reset(m, seed);
                files_save(m, "saved.safetensors");
            }
        usleep((useconds_t)(1000 + 700 * i));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        EXPECT(files_load(m, "saved.safetensors") == FILES_OK);
    }
}

int main(void)
{
    START(files, m, FILES_ARENA_BYTES)
    files_reset(&m, 1);
    wrong_files(&m);
    wrong_places(&m);
    no_files(&m);
    a_file_of_another_tool(&m);
    saves_and_loads(&m);
    a_full_disk(&m);
    killed_while_saving(&m);
    free(m_arena);
    FINISH();
}
