/* What is drawn for graphviz, before it is drawn: the same for a plan's steps and a graph's nodes.
 */
#ifndef GPLAN_DOT_H
#define GPLAN_DOT_H

#include "codegen/picture.h"

/* A step of a plan, a node of a graph, an input or an output. */
typedef enum { ITEM_OP, ITEM_INPUT, ITEM_OUTPUT } ItemKind;

typedef struct {
    const char *title; /* conv2d; the name of an input */
    const char *name;  /* "" for inputs and outputs */
    const char *shape; /* of the first result */
    const char *where; /* 12.0 MiB at 0x1c0 */
    const char *tip;
    Id scope;
    Id first;        /* the item that computed the same before; itself: this is the first */
    uint64_t bytes;  /* of its results */
    uint64_t params; /* that it reads */
    uint8_t kind, phase, program;
    bool live; /* a result is alive at the peak */
    bool peak; /* the peak is here */
} Item;

typedef struct {
    Id from, to; /* items */
    uint64_t bytes;
} Link;

typedef struct {
    const Graph *g;
    Arena *arena;
    const Plan *plan; /* NULL: the graph alone */
    const EmitOptions *options;
    uint64_t peak;
    ARRAY(Item) item;
    ARRAY(Link) link;
} Drawing;

Text drawing_write(const Drawing *d);

#endif
