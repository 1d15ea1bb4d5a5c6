/* A long search, watched: a line on the terminal, and ctrl-C that ends it but not the program. */
#ifndef GPLAN_WATCH_H
#define GPLAN_WATCH_H

#include "frontend/command/options.h"
#include "planner/planner.h"

void watch_begin(const Options *options);
void watch_end(void);
bool watch_stopped(void); /* by ctrl-C, or the seconds are over: all that is done shares them */
void watch(PlanOptions *plan); /* lets the search see and show it, in the seconds that are left */
/* A line on standard error where -v asked for it: seconds since watch_begin, and what was done. */
void watch_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
