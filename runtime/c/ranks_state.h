/* Sums over ranks: what the engine (ranks.h) keeps, and how it reaches the other ranks.
 *
 * What is summed is a stream of tensors in one order, which is the same on every rank. It is cut
 * into pieces, and piece i is owned by rank i % ranks. The others send their part of it to the
 * owner, which adds them in rank order and sends the sum back to them: so the bits of a sum hang
 * neither on pieces nor on what arrives first. Messages go from gradients and into gradients; only
 * what an owner receives lies in memory of its own, a few pieces, planned with the rest.
 *
 * A tensor may be sharded: rank r owns numbers [r * part, (r + 1) * part) of it, and the pieces
 * of all shards come in turn. Such a sum may stay with its owners, be added to what they have, and
 * numbers that only their owner knows may be sent to all.
 *
 * Nothing here waits save gp_ranks_wait: who calls gp_ranks_poll now and then moves what can move.
 */
#ifndef GP_RANKS_STATE_H
#define GP_RANKS_STATE_H

#include "base.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    GP_RANKS_HEAD = 4096,     /* bytes that the state takes at most */
    GP_RANKS_PIECE = 1 << 16, /* numbers in a piece, at most */
    GP_RANKS_OWN = 4,         /* pieces that are added at a time, */
    GP_RANKS_SLOTS = 3,       /* each with this much memory: a sum, two that arrive */
    GP_RANKS_AWAY = 16,       /* and pieces that others add */
    GP_RANKS_SENDS = 4,       /* of one piece at a time */
    GP_RANKS_TEXT = 200,
};

/* What a message is: its tag. Pieces are numbered from there on, round and round. */
enum {
    GP_TAG_ALARM = 1,
    GP_TAG_SHARE,
    GP_TAG_ASK,    /* whether a rank is still there, */
    GP_TAG_ANSWER, /* and that it is */
    GP_TAG_GATHER,
    GP_TAG_PART = 16,
    GP_TAGS = 8192,
    GP_TAG_SUM = GP_TAG_PART + GP_TAGS,
};

typedef struct gp_ranks gp_ranks;

/* A message under way, as the link has it; 0: none. */
typedef uint64_t gp_message;

/* How bytes reach another rank. Neither send nor receive waits; test tells whether one is done, and
 * `heard` takes a text where there is one, and returns 1 + the rank that it is from. All return
 * less than 0 where that failed, and leave the reason in ranks->text. */
typedef struct {
    int (*send)(gp_ranks *r, const void *from, size_t bytes, int rank, int tag, gp_message *m);
    int (*receive)(gp_ranks *r, void *to, size_t bytes, int rank, int tag, gp_message *m);
    int (*test)(gp_ranks *r, gp_message *m);
    int (*heard)(gp_ranks *r, int tag, char *text);
} gp_link;

/* What is done with a tensor of the stream: owners add the parts of all ranks, to what they have,
 * and send the sum to all; `to` is as long as a shard. */
enum { GP_SUM_ADDS = 1, GP_SUM_ON = 2, GP_SUM_SPREADS = 4, GP_SUM_APART = 8 };

typedef struct {
    gp_real *at, *to;    /* what this rank has; where its owner's sum is, maybe the same bytes */
    int64_t count, part; /* numbers; of those, what each rank owns (0: pieces in turn) */
    int64_t how;         /* GP_SUM_ADDS, ... */
    int64_t begin, end;  /* numbers of its pieces */
} gp_ranks_tensor;

/* The next piece of the stream, for those who look for theirs. */
typedef struct {
    int64_t tensor, number;
} gp_pieces;

/* A piece under way. */
typedef struct {
    int32_t busy, stage, how;
    gp_real *at, *to; /* the same bytes where a sum takes the place of what it is of */
    int64_t count, number;
    int32_t posted, taken; /* messages that were begun; ranks whose part is in the sum */
    gp_message message[GP_RANKS_SENDS];
} gp_piece;

struct gp_ranks {
    gp_link link;
    uint64_t world; /* the link's own */
    int32_t rank, ranks;
    int32_t failed;  /* GP_ERANK, for ever */
    int32_t heard;   /* what failed, another rank has said */
    int32_t begun;   /* tensors, */
    int32_t ended;   /* of them, those that somebody waited for */
    int32_t most;    /* tensors that there is room for */
    int64_t length;  /* of a piece */
    int64_t changes; /* counts what moved */
    uint64_t told;   /* bytes that this rank sent */
    double timeout;  /* seconds in which nothing moves */
    int32_t asked;   /* 1 + the rank that did not answer, and was asked; 0: none */
    int32_t asks;    /* since something moved */
    int32_t busy;    /* this rank writes a file, and looks up meanwhile */
    gp_message ask, answer;
    double waited; /* seconds that the program stood still for others */
    gp_pieces own, away;
    gp_piece piece[GP_RANKS_OWN + GP_RANKS_AWAY];
    char text[GP_RANKS_TEXT]; /* what went wrong */
};

_Static_assert(sizeof(gp_ranks) <= GP_RANKS_HEAD, "the state was planned smaller");

/* What lies after the state: the tensors, and the memory of pieces. */
#define GP_RANKS_SUM(r) ((gp_ranks_tensor *)(void *)((unsigned char *)(r) + GP_RANKS_HEAD))

GP_FUNCTION gp_real *gp_ranks_slot(gp_ranks *r, const gp_piece *p, int slot)
{
    return (gp_real *)(void *)(GP_RANKS_SUM(r) + r->most) +
           ((p - r->piece) * GP_RANKS_SLOTS + slot) * r->length;
}

/* Writes why, the first time, and returns GP_ERANK. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
GP_HOST int
gp_ranks_fail(gp_ranks *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!r->failed)
        vsnprintf(r->text, sizeof r->text, format, arguments);
    va_end(arguments);
    return r->failed = GP_ERANK;
}

#endif
