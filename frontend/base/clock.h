/* Time that only goes forward. */
#ifndef GPLAN_CLOCK_H
#define GPLAN_CLOCK_H

double clock_seconds(void);

#endif
