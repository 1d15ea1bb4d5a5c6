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

/* What ranks do with a tensor, as the ops do it. */
enum {
    IN_PLACE = GP_SUM_ADDS | GP_SUM_SPREADS, /* all have the sum */
    IN_SHARDS = GP_SUM_ADDS,                 /* each its shard of it, in its place */
    GATHERED = GP_SUM_SPREADS,               /* each has its shard, and then all have all */
    ALONE = GP_SUM_ADDS | GP_SUM_APART,      /* each its shard of it, apart */
    MORE = GP_SUM_ADDS | GP_SUM_APART | GP_SUM_ON,
    MORE_OF_ALL = GP_SUM_ADDS | GP_SUM_SPREADS | GP_SUM_ON, /* to what is there, apart */
    MODES = 6
};

static float part[MOST][TENSORS][LONGEST], sum[MOST][TENSORS][LONGEST], want[TENSORS][LONGEST];
static int64_t count[TENSORS], shard[TENSORS]; /* of each rank; 0: pieces in turn */
static int how[TENSORS];

static int is_apart(int t)
{
    return how[t] == ALONE || how[t] == MORE || how[t] == MORE_OF_ALL;
}

static int owner_of(int t, int64_t i)
{
    return shard[t] ? (int)(i / shard[t]) : 0;
}

/* The tensors of all ranks, and what is to come of them. */
static void make_tensors(int ranks)
{
    static const int modes[MODES] = {IN_PLACE, IN_SHARDS, GATHERED, ALONE, MORE, MORE_OF_ALL};
    for (int t = 0; t < TENSORS; t++) {
        how[t] = modes[draw(MODES)];
        count[t] = draw(4) ? 1 + draw(LONGEST) : 1 + draw(3);
        shard[t] = (count[t] + ranks - 1) / ranks + draw(9);
        if (how[t] == IN_PLACE || how[t] == MORE_OF_ALL)
            shard[t] *= draw(2);
        for (int64_t i = 0; i < count[t]; i++) {
            const int owner = owner_of(t, i);
            const float before = number();
            for (int k = 0; k < ranks; k++) {
                part[k][t][i] = number();
                sum[k][t][i] = before;
            }
            want[t][i] = how[t] & GP_SUM_ON ? before + part[0][t][i] : part[0][t][i];
            for (int k = 1; k < ranks; k++)
                want[t][i] += part[k][t][i];
            if (how[t] == GATHERED)
                want[t][i] = part[owner][t][i];
        }
    }
    for (int t = 0; t < TENSORS; t++) /* what an owner had, where its shard is apart */
        for (int64_t i = 0; i < count[t] && how[t] & GP_SUM_APART; i++) {
            const float before = number();
            sum[owner_of(t, i)][t][i - owner_of(t, i) * shard[t]] = before;
            want[t][i] = how[t] & GP_SUM_ON ? before + part[0][t][i] : part[0][t][i];
            for (int k = 1; k < ranks; k++)
                want[t][i] += part[k][t][i];
        }
}

static gp_ranks_tensor given(int k, int t)
{
    return (gp_ranks_tensor){.at = part[k][t],
                             .to = is_apart(t) ? sum[k][t] : part[k][t],
                             .count = count[t],
                             .part = shard[t],
                             .how = how[t]};
}

/* Whether rank k has what it ought to, to the bit. */
static int is_right(int k, int t)
{
    const float *has = is_apart(t) ? sum[k][t] : part[k][t];
    for (int64_t i = 0; i < count[t]; i++) {
        if (!(how[t] & GP_SUM_SPREADS) && owner_of(t, i) != k)
            continue;
        const int64_t at = how[t] & GP_SUM_APART ? i - k * shard[t] : i;
        if (memcmp(&has[at], &want[t][i], sizeof *has) != 0)
            return 0;
    }
    return 1;
}

/* Each is begun when chance has it, but in one order. */
static int sums(int ranks, int64_t length, int step)
{
    int begun[MOST] = {0};
    make_tensors(ranks);
    for (int left = ranks; left > 0;) {
        const int k = draw(ranks);
        gp_ranks *r = at[k];
        if (begun[k] < TENSORS && draw(3) == 0) {
            gp_ranks_join(r, given(k, begun[k]));
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
            if (gp_ranks_end(at[k]) != GP_OK || !is_right(k, t))
                return fprintf(stderr,
                               "%d ranks, pieces of %d, step %d: tensor %d, %d, on rank %d\n",
                               ranks, (int)length, step, t, how[t], k);
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
