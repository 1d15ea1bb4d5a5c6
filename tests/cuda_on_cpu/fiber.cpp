/* See fiber.h. On x86-64 a switch is a few instructions; ucontext, which asks the kernel at each
 * switch, serves other machines (and -DCUDA_ON_CPU_UCONTEXT). */
#include "fiber.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) && !defined(CUDA_ON_CPU_UCONTEXT)
#define CUDA_ON_CPU_UCONTEXT
#endif

enum { STACK_BYTES = 128 * 1024, GUARD_BYTES = 64 * 1024 };

struct Fiber {
    char *stack;
    size_t bytes;
    void (*body)();
    void *top; /* its stack pointer while it waits */
    ucontext_t context;
    Fiber *older; /* all of them stay until the program ends */
};

static Fiber outside; /* whoever is not a fiber */
static Fiber *current = &outside, *newest;
#ifdef FIBER_ASAN
static Fiber *left;
#endif

static void arrive()
{
#ifdef FIBER_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(NULL, &stack, &bytes);
    if (left == &outside) {
        outside.stack = (char *)stack;
        outside.bytes = bytes;
    }
#endif
}

static void enter()
{
    arrive();
    current->body();
    abort();
}

#ifdef CUDA_ON_CPU_UCONTEXT
static void jump(Fiber *from, Fiber *to)
{
    swapcontext(&from->context, &to->context);
}

static void prepare(Fiber *fiber)
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = fiber->bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, enter, 0);
}
#else
/* Keeps what a called function must keep, on the stack that is left. */
extern "C" void cuda_on_cpu_jump(void **from, void *to);
asm(".text\n"
    ".type cuda_on_cpu_jump, @function\n"
    "cuda_on_cpu_jump:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n");

static void jump(Fiber *from, Fiber *to)
{
    cuda_on_cpu_jump(&from->top, to->top);
}

/* As if `enter` had been called from nowhere: six registers and where to return to. A called
 * function begins eight bytes off a multiple of sixteen. */
static void prepare(Fiber *fiber)
{
    void **top = (void **)(fiber->stack + fiber->bytes) - 1;
    *--top = (void *)enter;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    fiber->top = top;
}
#endif

void fiber_restart(Fiber *fiber, void (*body)())
{
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(fiber->stack, fiber->bytes);
#endif
    fiber->body = body;
    prepare(fiber);
}

Fiber *fiber_new(void (*body)())
{
    Fiber *fiber = new Fiber();
    fiber->older = newest;
    newest = fiber;
    char *map = (char *)mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int opened = mprotect(map + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE);
    assert(map != MAP_FAILED && opened == 0);
    (void)opened;
    fiber->stack = map + GUARD_BYTES;
    fiber->bytes = STACK_BYTES;
    fiber_restart(fiber, body);
    return fiber;
}

void fiber_switch(Fiber *to)
{
    Fiber *from = current;
    current = to ? to : &outside;
#ifdef FIBER_ASAN
    left = from;
    __sanitizer_start_switch_fiber(NULL, current->stack, current->bytes);
#endif
    jump(from, current);
    arrive();
}
