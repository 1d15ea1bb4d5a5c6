/* The free bytes between what is alive at one time, while a sweep moves along: a list of pieces
 * in order of offset, and a treap over the free ones. For first fit it is ordered by offset and
 * knows the largest in each subtree, for best fit by size; so either the lowest piece of a
 * sufficient size or the smallest is found in logarithmic time.
 */
#include "planner/pack/internal.h"

typedef struct {
    uint64_t offset, size;
    uint32_t below, above;        /* the list; 0: the end */
    uint32_t left, right, father; /* the treap of free pieces */
    uint32_t priority;
    uint64_t largest; /* free size in the subtree */
    bool used;
} Piece;

struct Gaps {
    Piece *piece;
    uint32_t pieces, spare, root; /* spare: a list of unused entries, by `above` */
    uint64_t random;
    bool best; /* fit */
};

Gaps *gaps_new(Arena *arena, uint32_t most)
{
    Gaps *gaps = ARENA_NEW(arena, Gaps);
    gaps->piece = ARENA_ARRAY(arena, Piece, 2 * (size_t)most + 3);
    return gaps;
}

static void update(Gaps *gaps, uint32_t p)
{
    Piece *at = &gaps->piece[p];
    at->largest = at->size;
    if (gaps->piece[at->left].largest > at->largest)
        at->largest = gaps->piece[at->left].largest;
    if (gaps->piece[at->right].largest > at->largest)
        at->largest = gaps->piece[at->right].largest;
}

static void update_up(Gaps *gaps, uint32_t p)
{
    for (; p; p = gaps->piece[p].father)
        update(gaps, p);
}

static uint32_t *link_to(Gaps *gaps, uint32_t p)
{
    Piece *father = &gaps->piece[gaps->piece[p].father];
    if (!gaps->piece[p].father)
        return &gaps->root;
    return father->left == p ? &father->left : &father->right;
}

/* Exchanges a piece with its father, keeping the order. */
static void rotate(Gaps *gaps, uint32_t p)
{
    uint32_t f = gaps->piece[p].father;
    Piece *piece = &gaps->piece[p], *father = &gaps->piece[f];
    uint32_t *link = link_to(gaps, f), inner;
    if (father->left == p) {
        inner = father->left = piece->right;
        piece->right = f;
    } else {
        inner = father->right = piece->left;
        piece->left = f;
    }
    if (inner)
        gaps->piece[inner].father = f;
    piece->father = father->father;
    father->father = p;
    *link = p;
    update(gaps, f);
    update(gaps, p);
}

static bool before(const Gaps *gaps, const Piece *a, const Piece *b)
{
    return gaps->best && a->size != b->size ? a->size < b->size : a->offset < b->offset;
}

static void free_insert(Gaps *gaps, uint32_t p)
{
    Piece *piece = &gaps->piece[p];
    uint32_t *link = &gaps->root, father = 0;
    while (*link) {
        father = *link;
        link = before(gaps, piece, &gaps->piece[father]) ? &gaps->piece[father].left
                                                         : &gaps->piece[father].right;
    }
    *link = p;
    piece->used = false;
    piece->left = piece->right = 0;
    piece->father = father;
    piece->priority = (uint32_t)pack_random(&gaps->random);
    update_up(gaps, p);
    while (piece->father && gaps->piece[piece->father].priority < piece->priority)
        rotate(gaps, p);
    update_up(gaps, p);
}

static void free_remove(Gaps *gaps, uint32_t p)
{
    Piece *piece = &gaps->piece[p];
    while (piece->left && piece->right) {
        bool left = gaps->piece[piece->left].priority > gaps->piece[piece->right].priority;
        rotate(gaps, left ? piece->left : piece->right);
    }
    uint32_t child = piece->left ? piece->left : piece->right;
    *link_to(gaps, p) = child;
    if (child)
        gaps->piece[child].father = piece->father;
    update_up(gaps, piece->father);
    piece->used = true;
}

static uint32_t piece_new(Gaps *gaps)
{
    uint32_t p = gaps->spare;
    if (p)
        gaps->spare = gaps->piece[p].above;
    else
        p = ++gaps->pieces;
    return p;
}

static void drop(Gaps *gaps, uint32_t p)
{
    Piece *piece = &gaps->piece[p];
    if (piece->below)
        gaps->piece[piece->below].above = piece->above;
    if (piece->above)
        gaps->piece[piece->above].below = piece->below;
    piece->above = gaps->spare;
    gaps->spare = p;
}

void gaps_clear(Gaps *gaps, bool best)
{
    gaps->best = best;
    gaps->pieces = gaps->spare = gaps->root = 0;
    gaps->random = 1;
    uint32_t p = piece_new(gaps);
    gaps->piece[p] = (Piece){.offset = 0, .size = PACK_MAX_BYTES};
    free_insert(gaps, p);
}

/* Cuts a piece in two at an offset; returns the upper one, which is in the list only. */
static uint32_t cut(Gaps *gaps, uint32_t p, uint64_t offset)
{
    uint32_t q = piece_new(gaps);
    Piece *low = &gaps->piece[p], *high = &gaps->piece[q];
    *high = (Piece){.offset = offset,
                    .size = low->offset + low->size - offset,
                    .below = p,
                    .above = low->above,
                    .used = true};
    if (high->above)
        gaps->piece[high->above].below = q;
    low->above = q;
    low->size = offset - low->offset;
    return q;
}

/* The first free piece of at least the size, in the order of the treap; 0: no such piece. */
static uint32_t find(const Gaps *gaps, uint64_t size)
{
    const Piece *piece = gaps->piece;
    uint32_t p = piece[gaps->root].largest >= size ? gaps->root : 0;
    while (p) {
        uint32_t left = piece[p].left;
        if (left && piece[left].largest >= size)
            p = left;
        else if (piece[p].size >= size)
            break;
        else
            p = piece[p].right;
    }
    return p;
}

uint32_t gaps_take(Gaps *gaps, uint64_t size, uint64_t align, uint64_t unit, uint64_t *offset)
{
    uint32_t p = find(gaps, size + (align - unit)); /* whatever the rounding costs */
    if (!p)
        return 0;
    *offset = round_up(gaps->piece[p].offset, align);
    free_remove(gaps, p);
    if (*offset > gaps->piece[p].offset) {
        uint32_t rest = p;
        p = cut(gaps, p, *offset);
        free_insert(gaps, rest);
    }
    if (gaps->piece[p].size > size)
        free_insert(gaps, cut(gaps, p, *offset + size));
    return p;
}

void gaps_give(Gaps *gaps, uint32_t p)
{
    Piece *piece = &gaps->piece[p];
    uint32_t below = piece->below, above = piece->above;
    if (above && !gaps->piece[above].used) {
        free_remove(gaps, above);
        piece->size += gaps->piece[above].size;
        drop(gaps, above);
    }
    if (below && !gaps->piece[below].used) {
        free_remove(gaps, below);
        piece->offset = gaps->piece[below].offset;
        piece->size += gaps->piece[below].size;
        drop(gaps, below);
    }
    free_insert(gaps, p);
}
