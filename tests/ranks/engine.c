/* Sums over ranks without MPI: all ranks in one process, each polled now and then, with messages
 * that take as long as chance has it. The sum is that of a loop in rank order, to the bit; what one
 * rank gives up ends all; and who waits for nothing says so. */
#include "runtime/c/ranks.h"

#include <stdlib.h>

enum { MOST = 7, TENSORS = 9, LONGEST = 700, MESSAGES = 4096 };

/* A message that was sent, and where it is wanted. */
typedef struct {
    int from, to, tag, sent, wanted, delay, done;
    size_t bytes;
    const void *source;
    void *target;
} Message;

static Message message[MESSAGES];
static int messages, late = 1, lost = -1; /* the rank whose messages never arrive */
static uint64_t chance = 1;
static gp_ranks *at[MOST];

static int draw(int below)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((chance >> 33) % (uint64_t)below);
}

static int find(int from, int to, int tag, int other)
{
    for (int i = 0; i < messages; i++)
        if (message[i].from == from && message[i].to == to && message[i].tag == tag &&
            message[i].done < 2 && !(other ? message[i].sent : message[i].wanted))
            return i;
    int i = 0;
    while (i < messages && message[i].done < 2) /* both sides know */
        i++;
    messages += i == messages;
    message[i] = (Message){.from = from, .to = to, .tag = tag, .delay = draw(late)};
    return i;
}

static int send_to(gp_ranks *r, const void *from, size_t bytes, int rank, int tag, gp_message *m)
{
    const int i = find(r->rank, rank, tag, 1);
    message[i].sent = 1;
    message[i].bytes = bytes;
    message[i].source = from;
    *m = (gp_message)i + 1;
    return 0;
}

static int receive_from(gp_ranks *r, void *to, size_t bytes, int rank, int tag, gp_message *m)
{
    const int i = find(rank, r->rank, tag, 0);
    message[i].wanted = 1;
    message[i].bytes = bytes;
    message[i].target = to;
    *m = (gp_message)i + 1;
    return 0;
}

/* Bytes move late: whoever touches them in between is found out. */
static int test(gp_ranks *r, gp_message *m)
{
    Message *is = &message[*m - 1];
    (void)r;
    if (is->from == lost || !is->sent || !is->wanted || is->delay-- > 0)
        return 0;
    if (is->source)
        memcpy(is->target, is->source, is->bytes);
    is->source = NULL;
    is->done++;
    return 1;
}

static int heard(gp_ranks *r, int tag, char *text)
{
    for (int i = 0; i < messages; i++)
        if (message[i].to == r->rank && message[i].tag == tag && message[i].source) {
            message[i].wanted = 1;
            message[i].target = text;
            memcpy(text, message[i].source, message[i].bytes);
            message[i].source = NULL;
            return 1 + message[i].from;
        }
    return 0;
}

static void begin(int ranks, int64_t length)
{
    const size_t bytes = GP_RANKS_HEAD + TENSORS * sizeof(gp_ranks_tensor) +
                         (size_t)(GP_RANKS_OWN * GP_RANKS_SLOTS * length) * sizeof(gp_real);
    messages = 0;
    for (int k = 0; k < ranks; k++) {
        free(at[k]);
        at[k] = malloc(bytes);
        gp_ranks_begin(at[k], bytes, TENSORS, k, ranks);
        at[k]->link = (gp_link){send_to, receive_from, test, heard};
    }
}

static float number(void)
{
    return (float)(draw(2000001) - 1000000) / (float)(1 + draw(999)) * (draw(2) ? 1e-6F : 1);
}

/* Tensors of all ranks, each begun when chance has it, but in one order. */
static int sums(int ranks, int64_t length, int step)
{
    static float part[MOST][TENSORS][LONGEST], want[TENSORS][LONGEST];
    int64_t count[TENSORS];
    int begun[MOST] = {0};
    for (int t = 0; t < TENSORS; t++) {
        count[t] = draw(4) ? 1 + draw(LONGEST) : 1 + draw(3);
        for (int64_t i = 0; i < count[t]; i++) {
            for (int k = 0; k < ranks; k++)
                part[k][t][i] = number();
            want[t][i] = part[0][t][i];
            for (int k = 1; k < ranks; k++)
                want[t][i] += part[k][t][i];
        }
    }
    for (int left = ranks; left > 0;) {
        const int k = draw(ranks);
        gp_ranks *r = at[k];
        if (begun[k] < TENSORS && draw(3) == 0) {
            gp_ranks_sum(r, part[k][begun[k]], count[begun[k]]);
            left -= ++begun[k] == TENSORS;
        } else if (gp_ranks_poll(r) != GP_OK) {
            return fprintf(stderr, "%s\n", r->text);
        }
    }
    for (int more = 1; more;) {
        more = 0;
        for (int k = 0; k < ranks; k++) {
            gp_ranks_poll(at[k]);
            more |= gp_ranks_done(at[k]) < GP_RANKS_SUM(at[k])[TENSORS - 1].end;
        }
    }
    for (int k = 0; k < ranks; k++)
        for (int t = 0; t < TENSORS; t++)
            if (gp_ranks_end(at[k]) != GP_OK ||
                memcmp(part[k][t], want[t], (size_t)count[t] * sizeof(float)) != 0)
                return fprintf(stderr, "%d ranks, pieces of %d, step %d: tensor %d on rank %d\n",
                               ranks, (int)length, step, t, k);
    messages = 0;
    return 0;
}

static int fails(const char *what, gp_ranks *r, int code, const char *text)
{
    if (code == GP_ERANK && strstr(r->text, text))
        return 0;
    return fprintf(stderr, "%s: %d, %s\n", what, code, r->text);
}

int main(void)
{
    static float one[4];
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int64_t length = 1; length <= 600; length = length * 3 + 1) {
            begin(ranks, length);
            for (int step = 0; step < 3; step++) {
                late = step ? 1 + 20 * step : 1;
                if (sums(ranks, length, step))
                    return 1;
            }
        }
    begin(3, 16); /* rank 2 never answers */
    lost = 2;
    at[0]->timeout = 0.05;
    gp_ranks_sum(at[0], one, 4);
    if (fails("a timeout", at[0], gp_ranks_end(at[0]), "rank 1 does not answer for 0.075 s"))
        return 1;
    begin(3, 16);
    lost = -1;
    gp_ranks_alarm(at[1], "index out of range");
    if (fails("an alarm", at[2], gp_ranks_poll(at[2]), "rank 1: index out of range") ||
        fails("after it", at[2], gp_ranks_end(at[2]), "rank 1: index out of range"))
        return 1;
    begin(2, 16);
    if (fails("an end", at[0], gp_ranks_end(at[0]), "never begun"))
        return 1;
    puts("sums of all sizes");
    return 0;
}
