/* The device of the self-test. */
#ifndef TESTS_SELFTEST_DEVICE_H
#define TESTS_SELFTEST_DEVICE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
/* What it is called; NULL where there is none, and `why` says so. */
const char *selftest_device(const char **why);
#ifdef __cplusplus
}
#endif

#endif
