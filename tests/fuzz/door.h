/* What reads the input of others, called in this process by a fuzzer: libFuzzer (`make fuzz`), or
 * replay.c, which tries the inputs that are kept and some changes of them (`make test`).
 *
 * A door is a file NAME_door.c with LLVMFuzzerTestOneInput, and a mutator of its own where changes
 * of bytes would hardly ever pass the first look at the input. */
#ifndef TESTS_FUZZ_DOOR_H
#define TESTS_FUZZ_DOOR_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most); /* the fuzzer's own */

int gplan_main(int argc, char **argv); /* frontend/command/gplan.c, whose main is renamed */

/* ---- door.c -----------------------------------------------------------------------------------
 */

/* The path of a file in memory that holds the input. */
const char *door_file(const uint8_t *data, size_t size);
/* The exit status of `gplan ARGUMENT...` (a list that ends in NULL). It must be 0, or 1 or 2 with a
 * message: anything else is a fault, and ends the process. */
int door_run(const char *const *argument);
/* Says what is wrong, and ends the process in a way that the fuzzer takes for a fault. */
void door_fail(const char *what) __attribute__((noreturn));
uint64_t door_hash(const uint8_t *data, size_t size);
/* Writes to the folder $FUZZ_ACCEPTED, where that is set, one in a thousand of the inputs that were
 * accepted, and beside them $FUZZ_SAMPLE of all, each as likely as the others (a reservoir: Vitter
 * 1985, algorithm R). */
void door_accept(const uint8_t *data, size_t size);

/* ---- json_changes.c ---------------------------------------------------------------------------
 */

/* A value of the text is changed, left out, repeated, or exchanged for another; what is no JSON is
 * changed as bytes. The length of the new text. */
size_t json_change(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Pseudo-random numbers of a mutator. */
typedef struct {
    uint64_t state;
} Dice;
unsigned dice_below(Dice *dice, unsigned n);

#endif
