/* What the test programs of emitted code share: one line for each expectation that fails. */
#ifndef EXPECT_H
#define EXPECT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(what)                                                  \
    do {                                                              \
        if (!(what)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            failures++;                                               \
        }                                                             \
    } while (0)

#define EXPECT_TEXT(text, part)                                                        \
    do {                                                                               \
        if (!strstr(text, part)) {                                                     \
            printf("%s:%d: '%s' does not say '%s'\n", __FILE__, __LINE__, text, part); \
            failures++;                                                                \
        }                                                                              \
    } while (0)

#define EXPECT_NEAR(a, b)                                                                    \
    do {                                                                                     \
        double near_a = (a), near_b = (b);                                                   \
        if (!(fabs(near_a - near_b) <= 1e-5 * (1 + fabs(near_b)))) {                         \
            printf("%s:%d: %s is %.9g, not %.9g\n", __FILE__, __LINE__, #a, near_a, near_b); \
            failures++;                                                                      \
        }                                                                                    \
    } while (0)

/* Memory for an arena, and a model in it; stops where that fails. */
#define START(type, m, bytes)                                   \
    type m;                                                     \
    void *m##_arena = aligned_alloc(64, ((bytes) + 127) & ~63); \
    memset(m##_arena, 0xa5, (bytes));                           \
    if (type##_init(&m, m##_arena, (bytes)) != 0) {             \
        puts(type##_error(&m));                                 \
        return 1;                                               \
    }

#define FINISH() return failures ? 1 : 0

#endif
