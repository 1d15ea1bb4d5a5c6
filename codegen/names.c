/* Names of a model as identifiers that C and C++ compilers take. */
#include "codegen/internal.h"

#include <ctype.h>
#include <string.h>

/* Keywords of C and C++, and what the headers that an emitted file includes may declare. Between
 * blanks, so that one search finds a whole word. */
static const char *const reserved[] = {
    " alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char char8_t"
    " char16_t char32_t class compl complex concept const const_cast consteval constexpr constinit"
    " continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum"
    " explicit export extern false final float for friend goto if imaginary import inline int long"
    " main module mutable namespace new noexcept noreturn not not_eq nullptr operator or or_eq"
    " override private protected public register reinterpret_cast requires restrict return short"
    " signed sizeof static static_assert static_cast std struct switch template this thread_local"
    " throw true try typedef typeid typename typeof union unix linux unsigned using virtual void"
    " volatile wchar_t while xor xor_eq NULL INFINITY NAN EOF errno ",
    " int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t"
    " uintmax_t size_t ssize_t ptrdiff_t off_t pid_t uid_t gid_t mode_t time_t clock_t timer_t"
    " max_align_t float_t double_t va_list fpos_t div_t ldiv_t useconds_t dev_t ino_t blksize_t"
    " int_fast8_t int_fast16_t int_fast32_t int_fast64_t int_least8_t int_least16_t int_least32_t"
    " int_least64_t uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t key_t id_t ",
    " abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div erf erfc exp exp2"
    " exp10 expm1 fabs fdim floor fma fmax fmin fmod frexp gamma hypot ilogb isfinite isinf isnan"
    " j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan "
    "nearbyint"
    " nextafter pow remainder remquo rint round scalb significand sin sincos sinh signbit signgam"
    " sqrt tan tanh tgamma trunc y0 y1 yn drem finite ",
    " access acct alarm brk chdir chown close confstr creat crypt dup dup2 environ execl execv exit"
    " fchown fcntl fork fsync getcwd getpid index isatty kill link lockf lseek nice open openat"
    " pause pipe pread pwrite read readlink remove rename rindex rmdir sbrk select setuid sleep"
    " stat swab symlink sync truncate unlink usleep vfork write clock clock_gettime time timespec"
    " timeval tm nanosleep abort atexit atof atoi bsearch calloc free getenv labs malloc qsort rand"
    " random realloc srand strtod strtol system ",
    " bcmp bcopy bzero ffs memccpy memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy"
    " strcspn strdup strerror strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok"
    " strxfrm clearerr fclose feof ferror fflush fgetc fgets fopen fprintf fputc fputs fread "
    "freopen"
    " fscanf fseek ftell fwrite getc getchar getline gets perror popen printf putc putchar puts"
    " rewind scanf setbuf snprintf sprintf sscanf stdin stdout stderr tmpfile tmpnam ungetc vprintf"
    " omp_get_thread_num ",
    /* What an emitted file calls its own parts. */
    " tensor slot init data item result death poison now op_end op_nan makes_nan ",
};

static bool is_reserved(Arena *arena, const char *name)
{
    const char *word = arena_printf(arena, " %s ", name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strstr(reserved[i], word))
            return true;
    return false;
}

/* The runtime's own names begin so. */
static bool is_ours(const char *name)
{
    return strcmp(name, "gp") == 0 || strncmp(name, "gp_", 3) == 0 ||
           strncmp(name, "GP_", 3) == 0 || strncmp(name, "GPLAN_", 6) == 0;
}

static bool is_taken(const Names *names, const char *name)
{
    for (size_t i = 0; i < names->taken.count; i++)
        if (strcmp(names->taken.at[i], name) == 0)
            return true;
    return false;
}

const char *name_claim(Names *names, const char *wanted)
{
    bool starts = isalpha((unsigned char)*wanted) && !is_ours(wanted);
    char *name = arena_printf(names->arena, "%s%s", starts ? "" : "m", wanted);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80)
            *at = '_';
    while (is_reserved(names->arena, name) || is_taken(names, name))
        name = arena_printf(names->arena, "%s_", name);
    ARRAY_PUSH(names->arena, &names->taken, name);
    return name;
}

const char *name_capitals(Arena *arena, const char *name)
{
    char *capitals = arena_printf(arena, "%s", name);
    for (char *at = capitals; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return capitals;
}

const char *c_prefix(Arena *arena, const char *model)
{
    Names names = {.arena = arena};
    return name_claim(&names, model);
}
