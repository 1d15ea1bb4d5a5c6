/* Stacks to switch between. */
#ifndef CUDA_ON_CPU_FIBER_H
#define CUDA_ON_CPU_FIBER_H

struct Fiber;
/* A fiber that calls `body` when it is first switched to; body never returns. */
Fiber *fiber_new(void (*body)());
/* Goes on with `to`, NULL: with whoever is not a fiber; returns when somebody switches back. */
void fiber_switch(Fiber *to);
/* Takes the fiber back to its start, wherever it is. */
void fiber_restart(Fiber *fiber, void (*body)());

#endif
