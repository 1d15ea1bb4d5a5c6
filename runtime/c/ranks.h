/* Sums over ranks: see ranks_state.h. */
#ifndef GP_RANKS_H
#define GP_RANKS_H

#include "ranks_state.h"
#include "settings.h"

#include <time.h>

/* ---- Pieces --------------------------------------------------------------------------------- */

/* Where piece `number` of a tensor is, and how long; 0: it is empty. */
GP_HOST int64_t gp_ranks_extent(const gp_ranks *r, const gp_ranks_tensor *sum, int64_t number,
                                int64_t *begin)
{
    const int64_t turn = (number - sum->begin) / r->ranks, owner = number % r->ranks;
    const int64_t in_part = turn * r->length;
    *begin = sum->part ? owner * sum->part + in_part : (number - sum->begin) * r->length;
    int64_t count = sum->count - *begin;
    if (sum->part && count > sum->part - in_part)
        count = sum->part - in_part;
    return count < 0 ? 0 : count < r->length ? count : r->length;
}

/* The next piece that is this rank's, or that is not; 0: none was begun. */
GP_HOST int gp_ranks_next(gp_ranks *r, gp_pieces *at, int own, gp_piece *p)
{
    while (at->tensor < r->begun) {
        const gp_ranks_tensor *sum = &GP_RANKS_SUM(r)[at->tensor];
        int64_t begin;
        if (at->number < sum->begin)
            at->number = sum->begin;
        if (at->number >= sum->end) {
            at->tensor++;
            continue;
        }
        const int64_t number = at->number++, count = gp_ranks_extent(r, sum, number, &begin);
        const int32_t owner = (int32_t)(number % r->ranks);
        if (count == 0 || (owner == r->rank) != own)
            continue;
        memset(p, 0, sizeof *p);
        p->how = (int32_t)sum->how;
        p->at = sum->at + begin;
        p->to = sum->to == sum->at ? p->at : sum->to; /* of a shard that is not here: none */
        if (sum->to != sum->at && (own || !(sum->how & GP_SUM_APART)))
            p->to += sum->how & GP_SUM_APART ? begin - owner * sum->part : begin;
        p->count = count;
        p->number = number;
        return p->busy = 1;
    }
    return 0;
}

/* All pieces below this number are summed, and here. */
GP_HOST int64_t gp_ranks_done(const gp_ranks *r)
{
    int64_t done = r->own.number < r->away.number ? r->own.number : r->away.number;
    for (int i = 0; i < GP_RANKS_OWN + GP_RANKS_AWAY; i++)
        if (r->piece[i].busy && r->piece[i].number < done)
            done = r->piece[i].number;
    return done;
}

GP_HOST int gp_ranks_send(gp_ranks *r, const gp_piece *p, const gp_real *from, int rank, int tag,
                          gp_message *m)
{
    const size_t bytes = (size_t)p->count * sizeof *from;
    r->told += bytes;
    r->changes++;
    return r->link.send(r, from, bytes, rank, tag + (int)(p->number % GP_TAGS), m);
}

GP_HOST int gp_ranks_receive(gp_ranks *r, const gp_piece *p, gp_real *to, int rank, int tag,
                             gp_message *m)
{
    r->changes++;
    return r->link.receive(r, to, (size_t)p->count * sizeof *to, rank,
                           tag + (int)(p->number % GP_TAGS), m);
}

/* Whether the message is done, or there is none. */
GP_HOST int gp_ranks_test(gp_ranks *r, gp_message *m)
{
    if (!*m)
        return 1;
    const int done = r->link.test(r, m);
    if (done > 0) {
        *m = 0;
        r->changes += m != &r->ask && m != &r->answer; /* these are no progress */
    }
    return done;
}

/* ---- A piece that another rank owns: our part goes there, the sum comes back ----------------- */

enum { GP_PIECE_BEGINS, GP_PIECE_SENDS, GP_PIECE_RECEIVES };

GP_HOST int gp_ranks_away(gp_ranks *r, gp_piece *p)
{
    const int owner = (int)(p->number % r->ranks);
    int code = 1;
    if (p->stage == GP_PIECE_BEGINS) {
        p->stage = GP_PIECE_SENDS;
        if (p->how & GP_SUM_ADDS)
            code = gp_ranks_send(r, p, p->at, owner, GP_TAG_PART, &p->message[0]);
    }
    if (code >= 0 && p->stage == GP_PIECE_SENDS && (code = gp_ranks_test(r, &p->message[0])) > 0) {
        p->stage = GP_PIECE_RECEIVES; /* from now on these bytes are the sum's */
        if (p->how & GP_SUM_SPREADS)
            code = gp_ranks_receive(r, p, p->to, owner, GP_TAG_SUM, &p->message[0]);
    }
    if (code >= 0 && p->stage == GP_PIECE_RECEIVES && (code = gp_ranks_test(r, &p->message[0])) > 0)
        p->busy = 0;
    return code;
}

/* ---- A piece of ours ------------------------------------------------------------------------- */

GP_HOST void gp_ranks_add(const gp_real *a, const gp_real *b, gp_real *sum, int64_t count)
{
    GP_IVDEP
    for (int64_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

/* Where the sum is when the parts of `ranks` ranks are in it. In place of our own part it can only
 * be when that is in it too. */
GP_HOST gp_real *gp_ranks_so_far(gp_ranks *r, const gp_piece *p, int ranks)
{
    return p->to == p->at && ranks <= r->rank ? gp_ranks_slot(r, p, 0) : p->to;
}

/* Where the part of the k-th other rank arrives: what begins the sum, where that begins. */
GP_HOST gp_real *gp_ranks_arrival(gp_ranks *r, const gp_piece *p, int k)
{
    return k == 0 && r->rank > 0 && !(p->how & GP_SUM_ON) ? gp_ranks_so_far(r, p, 1)
                                                          : gp_ranks_slot(r, p, 1 + k % 2);
}

/* Puts the part of the next rank into the sum; 0: it is not here yet. */
GP_HOST int gp_ranks_take(gp_ranks *r, gp_piece *p)
{
    const int rank = p->taken, k = rank - (rank > r->rank);
    const int code = rank == r->rank ? 1 : k < p->posted ? gp_ranks_test(r, &p->message[k % 2]) : 0;
    if (code <= 0)
        return code;
    const gp_real *part = rank == r->rank ? p->at : gp_ranks_arrival(r, p, k);
    gp_real *sum = gp_ranks_so_far(r, p, rank + 1);
    if (rank > 0 || p->how & GP_SUM_ON)
        gp_ranks_add(gp_ranks_so_far(r, p, rank), part, sum, p->count);
    else if (sum != part)
        memcpy(sum, part, (size_t)p->count * sizeof *sum);
    p->taken++;
    r->changes++;
    return 1;
}

/* Parts arrive two at a time, and are added in rank order. */
GP_HOST int gp_ranks_gather(gp_ranks *r, gp_piece *p)
{
    int code = 1;
    while (code > 0 && p->taken < r->ranks) {
        const int taken = p->taken - (p->taken > r->rank);
        for (; code >= 0 && p->posted < r->ranks - 1 && p->posted < taken + 2; p->posted++) {
            const int k = p->posted, rank = k + (k >= r->rank);
            code = gp_ranks_receive(r, p, gp_ranks_arrival(r, p, k), rank, GP_TAG_PART,
                                    &p->message[k % 2]);
        }
        code = code < 0 ? code : gp_ranks_take(r, p);
    }
    return code;
}

/* The sum goes to all others, first to the next in rank. */
GP_HOST int gp_ranks_spread(gp_ranks *r, gp_piece *p)
{
    int idle = 0;
    for (int i = 0; i < GP_RANKS_SENDS; i++) {
        int code = gp_ranks_test(r, &p->message[i]);
        while (code > 0 && p->posted < r->ranks - 1) {
            const int rank = (r->rank + 1 + p->posted++) % r->ranks;
            code = gp_ranks_send(r, p, p->to, rank, GP_TAG_SUM, &p->message[i]);
            code = code < 0 ? code : gp_ranks_test(r, &p->message[i]);
        }
        if (code < 0)
            return code;
        idle += code > 0;
    }
    if (idle == GP_RANKS_SENDS)
        p->busy = 0;
    return 0;
}

GP_HOST int gp_ranks_own(gp_ranks *r, gp_piece *p)
{
    int code = 1;
    if (p->stage == GP_PIECE_BEGINS) {
        code = p->how & GP_SUM_ADDS ? gp_ranks_gather(r, p) : 1;
        if (code <= 0)
            return code;
        p->stage = GP_PIECE_SENDS;
        p->posted = 0;
        p->busy = (p->how & GP_SUM_SPREADS) != 0;
    }
    return p->busy ? gp_ranks_spread(r, p) : code;
}

/* ---- Moving and waiting --------------------------------------------------------------------- */

/* An alarm of another rank, a question whether this one is there, or the answer to ours. */
GP_HOST int gp_ranks_hear(gp_ranks *r)
{
    static const char here[GP_RANKS_TEXT] = "here", busy[GP_RANKS_TEXT] = "busy";
    char text[GP_RANKS_TEXT];
    int heard = r->link.heard(r, GP_TAG_ALARM, text);
    if (heard > 0) {
        r->heard = 1;
        return gp_ranks_fail(r, "rank %d: %s", heard - 1, text);
    }
    while (heard == 0 && gp_ranks_test(r, &r->answer) > 0 &&
           (heard = r->link.heard(r, GP_TAG_ASK, text)) > 0)
        heard = r->link.send(r, r->busy ? busy : here, sizeof here, heard - 1, GP_TAG_ANSWER,
                             &r->answer);
    if (heard >= 0 && r->asked && (heard = r->link.heard(r, GP_TAG_ANSWER, text)) > 0) {
        r->asked = 0;
        if (strcmp(text, busy) == 0) /* it gets on, so nobody waits in vain */
            r->asks = 0;
    }
    return heard < 0 ? gp_ranks_fail(r, "a message failed") : GP_OK;
}

/* Moves what can move; GP_ERANK where another rank gave up. */
GP_HOST int gp_ranks_poll(gp_ranks *r)
{
    if (r->failed || gp_ranks_hear(r) != GP_OK)
        return r->failed;
    for (int i = 0; i < GP_RANKS_OWN + GP_RANKS_AWAY; i++) {
        gp_piece *p = &r->piece[i];
        const int own = i < GP_RANKS_OWN;
        if (!p->busy && !gp_ranks_next(r, own ? &r->own : &r->away, own, p))
            continue;
        if ((own ? gp_ranks_own(r, p) : gp_ranks_away(r, p)) < 0)
            return gp_ranks_fail(r, "a message to or from another rank failed");
    }
    return GP_OK;
}

GP_HOST double gp_ranks_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The rank that the oldest piece waits for; -1: for none. */
GP_HOST int gp_ranks_late(const gp_ranks *r)
{
    const int64_t number = gp_ranks_done(r);
    for (int i = 0; i < GP_RANKS_OWN + GP_RANKS_AWAY; i++)
        if (r->piece[i].busy && r->piece[i].number == number)
            return i >= GP_RANKS_OWN ? (int)(number % r->ranks)
                   : r->piece[i].stage == GP_PIECE_BEGINS
                       ? r->piece[i].taken
                       : (r->rank + r->piece[i].posted) % r->ranks;
    return -1;
}

/* Between two looks at whether something moved: at first at once, then now and then, so that ranks
 * which share a core get on. */
GP_HOST void gp_ranks_pause(int64_t looks)
{
    const struct timespec a_while = {0, looks < 1000 ? 1000 : 50000};
    if (looks > 100)
        nanosleep(&a_while, NULL);
}

/* For a rank that works alone while others may wait for it. */
GP_HOST void gp_ranks_look_up(gp_ranks *r)
{
    r->busy = 1;
    gp_ranks_poll(r);
    r->busy = 0;
}

/* Tells all others that this rank gives up, and why. */
GP_HOST void gp_ranks_alarm(gp_ranks *r, const char *why)
{
    const double begin = gp_ranks_clock();
    if (r->failed)
        return;
    gp_ranks_fail(r, "%s", why);
    for (int rank = 0; rank < r->ranks; rank++) {
        gp_message m = 0;
        if (rank == r->rank || r->link.send(r, r->text, sizeof r->text, rank, GP_TAG_ALARM, &m) < 0)
            continue;
        while (m && gp_ranks_test(r, &m) == 0 && gp_ranks_clock() - begin < 1)
            gp_ranks_pause(200);
    }
}

/* For so long nothing moved: the rank that is waited for is asked whether it is there, for it may
 * wait for another. Who does not answer that either is named to all; and nobody waits for ever. */
GP_HOST int gp_ranks_ask(gp_ranks *r, int late, double *since)
{
    static const char there[GP_RANKS_TEXT] = "there?";
    char text[GP_RANKS_TEXT];
    if (r->asked == 0 && r->asks < 10 && gp_ranks_test(r, &r->ask) > 0) {
        r->asked = 1 + late;
        r->asks++;
        *since = gp_ranks_clock() - r->timeout / 2;
        return r->link.send(r, there, sizeof there, late, GP_TAG_ASK, &r->ask) < 0
                   ? gp_ranks_fail(r, "a message to rank %d failed", late)
                   : GP_OK;
    }
    snprintf(text, sizeof text, "rank %d does not answer for %g s", late,
             (1 + 0.5 * r->asks) * r->timeout);
    gp_ranks_alarm(r, text);
    return r->failed;
}

/* One more look, from `since` on in vain; GP_ERANK where that was too often. */
GP_HOST int gp_ranks_look(gp_ranks *r, int late, int64_t *looks, int64_t *changes, double *since)
{
    int code = gp_ranks_poll(r);
    if (r->changes != *changes) {
        *changes = r->changes;
        *since = gp_ranks_clock();
        *looks = r->asked = r->asks = 0;
    } else if (code == GP_OK && ++*looks % 64 == 0 && gp_ranks_clock() - *since > r->timeout) {
        code = gp_ranks_ask(r, late < 0 ? gp_ranks_late(r) : late, since);
    }
    gp_ranks_pause(*looks);
    return code;
}

/* Until all pieces below this number are summed. */
GP_HOST int gp_ranks_wait(gp_ranks *r, int64_t number)
{
    const double begin = gp_ranks_clock();
    double since = begin;
    int64_t looks = 0, changes = r->changes;
    int code = gp_ranks_poll(r);
    while (code == GP_OK && gp_ranks_done(r) < number)
        code = gp_ranks_look(r, -1, &looks, &changes, &since);
    r->waited += gp_ranks_clock() - begin;
    return code;
}

/* Until one message is done. */
GP_HOST int gp_ranks_await(gp_ranks *r, int rank, gp_message *m)
{
    const double begin = gp_ranks_clock();
    double since = begin;
    int64_t looks = 0, changes = r->changes;
    int code = GP_OK, done;
    while (code == GP_OK && (done = gp_ranks_test(r, m)) <= 0)
        code = done < 0 ? gp_ranks_fail(r, "a message to or from rank %d failed", rank)
                        : gp_ranks_look(r, rank, &looks, &changes, &since);
    r->waited += gp_ranks_clock() - begin;
    return code;
}

/* ---- For the program ------------------------------------------------------------------------- */

/* The state, in `bytes` of memory: `sums` tensors at most are under way. The link is set by whoever
 * has one. */
GP_HOST void gp_ranks_begin(gp_ranks *r, size_t bytes, int sums, int rank, int ranks)
{
    const size_t taken = GP_RANKS_HEAD + (size_t)sums * sizeof(gp_ranks_tensor);
    memset(r, 0, sizeof *r);
    r->rank = rank;
    r->ranks = ranks;
    r->most = sums;
    r->timeout = 300;
    r->length = (int64_t)((bytes - taken) / (GP_RANKS_OWN * GP_RANKS_SLOTS * sizeof(gp_real)));
    if (r->length > GP_RANKS_PIECE)
        r->length = GP_RANKS_PIECE;
}

/* A tensor joins the stream; its bytes are not ours until it has ended. Given are at, to, count,
 * part and how. */
GP_HOST int gp_ranks_join(gp_ranks *r, gp_ranks_tensor given)
{
    const int64_t ranks = r->ranks;
    if (r->begun == r->ended) { /* the stream begins anew */
        memset(&r->own, 0, sizeof r->own);
        memset(&r->away, 0, sizeof r->away);
        r->begun = r->ended = 0;
    }
    if (r->begun == r->most)
        return gp_ranks_fail(r, "more sums than were planned");
    const int64_t last = r->begun ? GP_RANKS_SUM(r)[r->begun - 1].end : 0;
    const int64_t each = given.part ? given.part : given.count;
    const int64_t pieces = (each + r->length - 1) / r->length;
    const int keeps = given.part || given.to != given.at; /* the same owners in each micro-batch */
    given.begin = keeps ? (last + ranks - 1) / ranks * ranks : last;
    given.end = given.begin + (given.part ? pieces * ranks : pieces);
    GP_RANKS_SUM(r)[r->begun++] = given;
    return gp_ranks_poll(r);
}

/* The sum of all ranks, on all of them, in its place. */
GP_HOST int gp_ranks_sum(gp_ranks *r, gp_real *at, int64_t count)
{
    const gp_ranks_tensor all = {
        .at = at, .to = at, .count = count, .how = GP_SUM_ADDS | GP_SUM_SPREADS};
    return gp_ranks_join(r, all);
}

/* Waits for the tensor that began first of those that did not end. */
GP_HOST int gp_ranks_end(gp_ranks *r)
{
    if (r->ended == r->begun)
        return gp_ranks_fail(r, "a sum ends that was never begun");
    return gp_ranks_wait(r, GP_RANKS_SUM(r)[r->ended++].end);
}

/* Bytes of rank 0 for all others. */
GP_HOST int gp_ranks_share(gp_ranks *r, void *bytes, size_t count)
{
    int code = GP_OK;
    for (int rank = 0; rank < r->ranks && code == GP_OK; rank++) {
        gp_message m = 0;
        if (r->rank == 0 && rank > 0)
            code = r->link.send(r, bytes, count, rank, GP_TAG_SHARE, &m);
        else if (r->rank == rank && rank > 0)
            code = r->link.receive(r, bytes, count, 0, GP_TAG_SHARE, &m);
        code = code < 0 ? gp_ranks_fail(r, "a message to or from rank %d failed", rank)
                        : gp_ranks_await(r, r->rank ? 0 : rank, &m);
    }
    return code;
}

/* What each rank came to, GP_OK or a code with a text: the first that is none is that of all. */
GP_HOST int gp_ranks_agree(gp_ranks *r, int code, char *text, size_t size)
{
    struct {
        int code;
        char text[GP_RANKS_TEXT];
    } own = {.code = code}, one;
    int moved = GP_OK;
    snprintf(own.text, sizeof own.text, "%.*s", (int)size, text);
    for (int rank = 1; rank < r->ranks && moved == GP_OK; rank++) {
        gp_message m = 0;
        if (r->rank != 0 && r->rank != rank)
            continue;
        if (r->rank == 0)
            moved = r->link.receive(r, &one, sizeof one, rank, GP_TAG_SHARE, &m);
        else
            moved = r->link.send(r, &own, sizeof own, 0, GP_TAG_SHARE, &m);
        moved = moved < 0 ? gp_ranks_fail(r, "a message to or from rank %d failed", rank)
                          : gp_ranks_await(r, r->rank ? 0 : rank, &m);
        if (moved == GP_OK && r->rank == 0 && own.code == GP_OK)
            own = one;
    }
    if (moved == GP_OK)
        moved = gp_ranks_share(r, &own, sizeof own);
    snprintf(text, size, "%s", own.text);
    return moved == GP_OK ? own.code : moved;
}

/* Of so many rows from `first` on, those up to the last; or those that go on with row 0. */
GP_HOST int gp_ranks_rows(const gp_ranks *r, int first, int some, int on)
{
    const int room = r->ranks - first;
    return on ? (some > room ? some - room : 0) : some < room ? some : room;
}

/* So many rows of a table from ours on go `to` a rank, and those from `from` on come from there. */
GP_HOST int gp_ranks_trade(gp_ranks *r, unsigned char *table, size_t row, int to, int from,
                           int some)
{
    int code = GP_OK;
    for (int part = 0; part < 2 && code == GP_OK; part++) { /* up to the last row; from the first */
        const int ours = gp_ranks_rows(r, r->rank, some, part);
        const int theirs = gp_ranks_rows(r, from, some, part);
        gp_message sent = 0, here = 0;
        if (theirs)
            code = r->link.receive(r, table + (part ? 0 : (size_t)from * row), (size_t)theirs * row,
                                   from, GP_TAG_GATHER, &here);
        if (ours && code >= 0)
            code = r->link.send(r, table + (part ? 0 : (size_t)r->rank * row), (size_t)ours * row,
                                to, GP_TAG_GATHER, &sent);
        if (code < 0)
            return gp_ranks_fail(r, "a message to or from another rank failed");
        code = gp_ranks_await(r, from, &here);
        code = code == GP_OK ? gp_ranks_await(r, to, &sent) : code;
    }
    return code;
}

/* Each rank has its row of a table; then all have all. What a rank has doubles each time (Bruck et
 * al., "Efficient algorithms for all-to-all communications", 1997). */
GP_HOST int gp_ranks_gather_rows(gp_ranks *r, void *table, size_t row)
{
    int code = GP_OK;
    for (int has = 1; has < r->ranks && code == GP_OK; has *= 2) {
        const int some = has < r->ranks - has ? has : r->ranks - has;
        code = gp_ranks_trade(r, table, row, (r->rank - has + r->ranks) % r->ranks,
                              (r->rank + has) % r->ranks, some);
    }
    return code;
}

/* What a rank says, and then what all of them do. */
typedef struct {
    double sum;
    int64_t most;
    uint64_t same; /* that must be equal */
    int64_t other; /* 1 + the rank where it is not; 0: nowhere */
} gp_said;

/* Numbers of all ranks: added in rank order, the largest, and whether they are equal. */
GP_HOST int gp_ranks_say(gp_ranks *r, gp_said *all, const char *what)
{
    gp_said one;
    int code = GP_OK;
    for (int rank = 1; rank < r->ranks && code == GP_OK; rank++) {
        gp_message m = 0;
        if (r->rank != 0 && r->rank != rank)
            continue;
        if (r->rank == 0)
            code = r->link.receive(r, &one, sizeof one, rank, GP_TAG_SHARE, &m);
        else
            code = r->link.send(r, all, sizeof *all, 0, GP_TAG_SHARE, &m);
        code = code < 0 ? gp_ranks_fail(r, "a message to or from rank %d failed", rank)
                        : gp_ranks_await(r, r->rank ? 0 : rank, &m);
        if (code == GP_OK && r->rank == 0) {
            all->sum += one.sum;
            all->most = one.most > all->most ? one.most : all->most;
            if (one.same != all->same && !all->other)
                all->other = 1 + rank;
        }
    }
    if (code == GP_OK)
        code = gp_ranks_share(r, all, sizeof *all);
    if (code == GP_OK && all->other) {
        r->heard = r->rank > 0;
        code = gp_ranks_fail(r, "rank %d has %s than rank 0", (int)all->other - 1, what);
    }
    return code;
}

GP_HOST int gp_ranks_total(gp_ranks *r, double *number, uint64_t same, const char *what)
{
    gp_said all = {.sum = *number, .same = same};
    const int code = gp_ranks_say(r, &all, what);
    *number = all.sum;
    return code;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* What is done once waits for the last micro-batch of this rank. */
GP_FUNCTION int gp_ranks_is_last(const gp_call *c)
{
    return c->run->micro + 1 >= c->run->micros;
}

/* Result 0 has the bytes of operand 0. */
GP_FUNCTION void gp_ranks_keep(const gp_call *c)
{
    if (c->in[0].data != c->out[0].data)
        memcpy(c->out[0].data, c->in[0].data,
               (size_t)gp_count(&c->in[0]) * gp_size(c->in[0].dtype));
}

/* Operands: a tensor, the state. */
GP_KERNEL(reduce_begin)
{
    const gp_reduce_begin_attr *a = c->attr;
    const gp_ranks_tensor sum = {.at = c->out[0].data,
                                 .to = c->out[0].data,
                                 .count = gp_count(&c->in[0]),
                                 .part = a->part,
                                 .how = (a->adds ? GP_SUM_ADDS : 0) |
                                        (a->spreads ? GP_SUM_SPREADS : 0)};
    gp_ranks_keep(c);
    return gp_ranks_join(c->in[1].data, sum);
}

/* Operands: a parameter, of which this rank has made its shard; the state. */
GP_KERNEL(gather_begin)
{
    const gp_gather_begin_attr *a = c->attr;
    const gp_ranks_tensor whole = {.at = c->out[0].data,
                                   .to = c->out[0].data,
                                   .count = gp_count(&c->in[0]),
                                   .part = a->part,
                                   .how = GP_SUM_SPREADS};
    return gp_ranks_join(c->in[1].data, whole);
}

GP_KERNEL(gather_end)
{
    return gp_ranks_end(c->in[1].data);
}

/* Operands: the tensor that began first of those that did not end, the state. */
GP_KERNEL(reduce_end)
{
    const int code = gp_ranks_end(c->in[1].data);
    gp_ranks_keep(c);
    return code;
}

/* The numbers of a shard that are this rank's: the last ranks may have less, or none. The rest
 * is 0. */
GP_FUNCTION void gp_ranks_clear(const gp_ranks *r, gp_real *shard, int64_t part, int64_t count)
{
    const int64_t left = count - r->rank * part, own = left < 0 ? 0 : left < part ? left : part;
    memset(shard + own, 0, (size_t)(part - own) * sizeof *shard);
}

/* Operands: a tensor, the state. Results: the tensor, its shard. */
GP_KERNEL(scatter_begin)
{
    const gp_scatter_begin_attr *a = c->attr;
    const gp_ranks_tensor sum = {.at = c->out[0].data,
                                 .to = c->out[1].data,
                                 .count = gp_count(&c->in[0]),
                                 .part = a->part,
                                 .how = GP_SUM_ADDS | GP_SUM_APART};
    gp_ranks_keep(c);
    gp_ranks_clear(c->in[1].data, sum.to, sum.part, sum.count);
    return gp_ranks_join(c->in[1].data, sum);
}

/* Operands: the tensor, its shard, the state. */
GP_KERNEL(scatter_end)
{
    const gp_tensor *shard = &c->in[1];
    const int code = gp_ranks_end(c->in[2].data);
    if (shard->data != c->out[0].data)
        memcpy(c->out[0].data, shard->data, (size_t)gp_count(shard) * sizeof(gp_real));
    return code;
}

/* Operands: a tensor, what micro-batches before have come to, the state. That is whole, or a
 * shard. */
GP_KERNEL(sum_begin)
{
    const gp_sum_begin_attr *a = c->attr;
    const int apart = gp_count(&c->in[1]) < gp_count(&c->in[0]), first = c->run->micro == 0;
    const gp_ranks_tensor sum = {.at = c->out[0].data,
                                 .to = c->in[1].data,
                                 .count = gp_count(&c->in[0]),
                                 .part = a->part,
                                 .how = GP_SUM_ADDS | (first ? 0 : GP_SUM_ON) |
                                        (apart ? GP_SUM_APART : 0) |
                                        (a->spreads && gp_ranks_is_last(c) ? GP_SUM_SPREADS : 0)};
    gp_ranks_keep(c);
    if (apart && first)
        gp_ranks_clear(c->in[2].data, sum.to, sum.part, sum.count);
    return gp_ranks_join(c->in[2].data, sum);
}

GP_KERNEL(sum_end)
{
    return gp_ranks_end(c->in[2].data);
}

/* Operands: a table with a row for each micro-batch of all ranks, the row of this one. Summed over
 * ranks it has all rows, since the others have zeros where this rank has its own. Rows are in the
 * order in which sums are taken: the first micro-batch of each rank, then the second. */
GP_KERNEL(stage_part)
{
    const gp_tensor *all = &c->in[0], *part = &c->in[1];
    gp_real *table = c->out[0].data;
    const int64_t micros = c->run->micros, ranks = GP_PARTS(c->run) / micros;
    const int64_t row = c->run->micro * ranks + GP_PART(c->run) / micros;
    if (c->run->micro == 0)
        memset(table, 0, (size_t)gp_count(all) * sizeof *table);
    memcpy(table + row * part->dim[0], part->data, (size_t)part->dim[0] * sizeof *table);
    return GP_OK;
}

/* Operands: what this rank has; where the engine is. */
GP_KERNEL(gather_ranks)
{
    gp_ranks *r = *(gp_ranks *const *)c->in[1].data;
    const size_t row = (size_t)gp_count(&c->in[0]) * sizeof(gp_real);
    memcpy((unsigned char *)c->out[0].data + (size_t)r->rank * row, c->in[0].data, row);
    return gp_ranks_gather_rows(r, c->out[0].data, row);
}

/* The sum over ranks of what all micro-batches of each have filled in, where it lies. */
GP_KERNEL(reduce_begin_kept)
{
    return gp_ranks_is_last(c) ? gp_ranks_sum(c->in[1].data, c->in[0].data, gp_count(&c->in[0]))
                               : GP_OK;
}

GP_KERNEL(reduce_end_kept)
{
    return gp_ranks_is_last(c) ? gp_ranks_end(c->in[1].data) : GP_OK;
}

#endif
