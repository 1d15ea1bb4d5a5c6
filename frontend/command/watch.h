/* A long search, watched: a line on the terminal, and ctrl-C that ends it but not the program. */
#ifndef GPLAN_WATCH_H
#define GPLAN_WATCH_H

#include "frontend/command/options.h"
#include "planner/planner.h"

void watch_begin(const Options *options);
void watch_end(void);
bool watch_stopped(void); /* by ctrl-C, or the seconds are over: all that is done shares them */
/* The plan options that the command line asks for: a search that is seen and shown, in the seconds
 * that are left. */
PlanOptions plan_options(const Options *o);
/* A line on standard error where -v asked for it: seconds since watch_begin, and what was done. */
void watch_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
