/* The packer's clock: it is looked at again and again, and not at every step. */
#include <criterion/criterion.h>

#include "frontend/base/clock.h"
#include "planner/pack/internal.h"

Test(pack_clock, ends_the_search_some_work_after_the_deadline)
{
    Pack pack = {.limit = UINT64_MAX, .deadline = clock_seconds() + 1e6};
    cr_assert(pack_spend(&pack, 1));
    pack.deadline = clock_seconds() - 1; /* it has passed since */
    cr_expect(pack_spend(&pack, 1), "the clock was looked at after one step");
    int steps = 0;
    while (steps < 1000 && pack_spend(&pack, 10000))
        steps++;
    cr_expect_lt(steps, 1000, "nobody looked at the clock again");
}

Test(pack_clock, does_not_count_where_there_is_no_deadline)
{
    Pack pack = {.limit = 1000};
    cr_expect(pack_spend(&pack, 999));
    cr_expect_not(pack_spend(&pack, 1), "the limit is reached");
    cr_expect_not(pack.out_of_time);
}
