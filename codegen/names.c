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
    " stat lstat chmod fchmod mkdir mkfifo mknod umask futimens utimensat fstatat swab symlink "
    "sync truncate unlink usleep vfork write clock clock_gettime time timespec"
    " timeval tm nanosleep abort atexit atof atoi bsearch calloc free getenv labs malloc qsort rand"
    " random realloc srand strtod strtol system ",
    " bcmp bcopy bzero ffs memccpy memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy"
    " strcspn strdup strerror strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok"
    " strxfrm clearerr fclose feof ferror fflush fgetc fgets fopen fprintf fputc fputs fread "
    "freopen"
    " fscanf fseek ftell fwrite getc getchar getline gets perror popen printf putc putchar puts"
    " rewind scanf setbuf snprintf sprintf sscanf stdin stdout stderr tmpfile tmpnam ungetc vprintf"
    " omp_get_thread_num ",
    " E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY"
    " ECANCELED ECHILD ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST"
    " EFAULT EFBIG EHOSTUNREACH EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP"
    " EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS"
    " ENODATA ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSR ENOSTR"
    " ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP"
    " EOVERFLOW EOWNERDEAD EPERM EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH"
    " ESTALE ETIME ETIMEDOUT ETXTBSY EWOULDBLOCK EXDEV BUFSIZ HUGE HUGE_VAL"
    " MAXFLOAT O_APPEND O_CLOEXEC O_CREAT O_DIRECTORY O_DSYNC O_EXCL O_NOCTTY O_NOFOLLOW O_NONBLOCK"
    " O_RDONLY O_RDWR O_RSYNC O_SYNC O_TRUNC O_WRONLY S_ISREG S_ISDIR S_IFMT"
    " SEEK_SET SEEK_CUR SEEK_END CLOCK_MONOTONIC CLOCK_REALTIME CLOCKS_PER_SEC ",
    /* What an emitted file calls its own parts. */
    (" tensor slot init data item begin constant constants result death poison now op_end op_name"
     " makes_nan failed op_failed save_to load_from take_mapped initialize is_bound run_begin "
     "find_op forward eval step update at AT OP ROW PLACE TENSOR T T2 INIT RESULT FIND_OP SAVED "
     "SAVED_COUNT "
     "NEEDED_COUNT RAN_FORWARD RAN_EVAL "
     "RAN_STEP "),
};

/* Parts of an emitted file that are numbered: forward_0. */
static const char *const numbered[] = {"forward_", "eval_", "step_", "update_", "list_"};

static bool is_word(Arena *arena, const char *name, size_t length)
{
    const char *word = arena_printf(arena, " %.*s ", (int)length, name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strstr(reserved[i], word))
            return true;
    return false;
}

static bool is_reserved(const Names *names, const char *name)
{
    Arena *arena = names->arena;
    if (names->macros) /* F_OK and its like are macros of unistd.h */
        return strlen(name) == 1 && strchr("FRWX", *name);
    size_t length = strlen(name);
    if (length > 1 && (name[length - 1] == 'f' || name[length - 1] == 'l') &&
        is_word(arena, name, length - 1))
        return true; /* powf, powl */
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        size_t stem = strlen(numbered[i]);
        if (strncmp(name, numbered[i], stem) == 0 &&
            strspn(name + stem, "0123456789") == length - stem)
            return true;
    }
    return is_word(arena, name, length);
}

/* The runtime's own names begin so. */
static bool is_ours(const char *name)
{
    bool gp = toupper((unsigned char)name[0]) == 'G' && toupper((unsigned char)name[1]) == 'P';
    return gp && (!name[2] || name[2] == '_' || strncmp(name, "GPLAN_", 6) == 0);
}

const char *name_claim(Names *names, const char *wanted)
{
    bool starts = isalpha((unsigned char)*wanted) && !is_ours(wanted);
    char *name = arena_printf(names->arena, "%s%s", starts ? "" : "m", wanted);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80)
            *at = '_';
    if (!names->taken)
        names->taken = names_new(names->arena);
    while (is_reserved(names, name) || names_find(names->taken, name) != UINT32_MAX)
        name = arena_printf(names->arena, "%s_", name);
    *names_at(names->taken, name) = 1;
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
