/* The syntax tree, and what lexer and parser share while they make it.
 *
 * Every name is interned: equal text is the same pointer. Depth of expressions and of brackets
 * is limited here, so that whoever walks the tree may recurse.
 */
#ifndef GPLAN_AST_H
#define GPLAN_AST_H

#include "frontend/frontend.h"

enum {
    MAX_NESTING = 200, /* brackets within brackets */
    MAX_DEPTH = 300,   /* of an expression, as lowering recurses over it */
    MAX_NAME = 100,    /* characters of a name */
    MAX_QUOTED = 1000, /* bytes of one in quotes, or of a string */
};

/* In the text of a name: around what the index of a repeat is put in for, "h.{i}.w". */
enum { SPELL_OPEN = 1, SPELL_CLOSE = 2 };

typedef struct {
    const char *text;
    Span span;
} Name;

typedef enum {
    EXPR_NAME,
    EXPR_INT,
    EXPR_FLOAT,
    EXPR_BOOL,
    EXPR_STRING,
    EXPR_LIST,   /* arg */
    EXPR_CALL,   /* text(arg, ...) */
    EXPR_BINARY, /* left text right; text is the op: add, matmul, ... */
    EXPR_NEG,    /* left */
    EXPR_SLICE,  /* left[subscript, ...] */
} ExprKind;

typedef struct Expr Expr;

/* Of a call or a list; in a declaration of a block, a name and perhaps its default. */
typedef struct {
    Name name; /* text NULL: by position */
    Name mark; /* batch, before a parameter of the model */
    const Expr *value;
} Argument;

typedef enum { SUBSCRIPT_INDEX, SUBSCRIPT_RANGE, SUBSCRIPT_ELLIPSIS } SubscriptKind;

typedef struct {
    SubscriptKind kind;
    const Expr *start, *stop, *step; /* NULL where left out; an index is in start */
    Span span;
} Subscript;

typedef ARRAY(Argument) Arguments;
typedef ARRAY(Subscript) Subscripts;
typedef ARRAY(Name) Names;

struct Expr {
    ExprKind kind;
    uint16_t depth;
    Span span;
    const char *text; /* a name, a string, the op of a call or an operator */
    Span text_span;   /* of the callee or of the operator */
    const Expr *left;
    union {
        int64_t integer; /* also of a bool */
        double number;
        const Expr *right;
        Arguments arg;
        Subscripts subscript;
    };
};

typedef enum {
    STMT_MODEL,
    STMT_INPUT,
    STMT_PARAM,
    STMT_CONST,
    STMT_ASSIGN,
    STMT_OUTPUT,
    STMT_METRIC,
    STMT_DATA,
    STMT_BLOCK,
    STMT_REPEAT,
    STMT_TRAIN,
    STMT_RETURN,
    STMT_HINT,      /* keep, recompute */
    STMT_PRECISION, /* of named layers */
    STMT_GROUP,     /* within train only */
    STMT_EXPR,      /* a value that nothing is bound to: an error, but a common one */
} StmtKind;

typedef struct Stmt Stmt;
typedef ARRAY(Stmt *) Stmts;

typedef struct {
    Name dtype; /* text NULL: f32 */
    Arguments dim;
    Span span;
    bool given; /* const may have none */
} Type;

struct Stmt {
    StmtKind kind;
    Span span;
    Name name;    /* what it declares; the optimizer of a train; the pattern of a group */
    Name format;  /* of a data statement */
    Names target; /* of an assignment or a hint; the inputs that data fills */
    Type type;
    const Expr *value; /* right side, loss, first iteration of a repeat */
    const Expr *stop;  /* of a repeat */
    Arguments arg;     /* of model, block, optimizer and data; all the values of a return */
    Stmts body;
    Span end;          /* of the body: its } */
    uint32_t template; /* a block or repeat: which of the source, counted from 0 */
    uint8_t hint;      /* HINT_* */
    bool frozen, shared;
    bool own_name; /* an assignment of one name that its block or model binds nowhere else */
};

struct Ast {
    Stmts body;
};

/* ---- While parsing -------------------------------------------------------------------------- */

struct NameTable;

typedef struct {
    char open;
    Span span;
} Bracket;

typedef struct Parse {
    Arena *arena;
    Diag *diag;
    const Source *source;
    struct NameTable *symbols; /* text -> place in interned */
    ARRAY(const char *) interned;
    Ast *ast;
    uint32_t templates;
    bool fatal;          /* stop here, everything is said */
    uint32_t error_line; /* of the last error that the lexer or the parser reported */

    void *scanner;
    size_t offset;         /* in the text, after the token read last */
    uint32_t line, column; /* there */
    Bracket bracket[MAX_NESTING];
    int brackets;
    struct { /* tokens that come before the next one of the text */
        int token;
        Span span;
    } queue[MAX_NESTING * 3 + 8];
    int queued;
    int last;        /* the token given out last */
    Name last_name;  /* the first word of the statement, where it is a plain name */
    bool line_start; /* the token is the first of its line */
    size_t token_offset, token_length;
} Parse;

const char *parse_intern(Parse *p, const char *text, size_t length);
/* After a syntax error: the rest of the statement will be skipped, up to the end of this line
 * where the brackets that are open are not closed further down. */
void lexer_recover(Parse *p);
void lexer_begin(Parse *p);
void lexer_end(Parse *p);

/* Building the tree (ast.c). */
Expr *expr_new(Parse *p, ExprKind kind, Span span);
Expr *expr_unary(Parse *p, ExprKind kind, Span span, const Expr *left);
Expr *expr_binary(Parse *p, const char *op, Span op_span, const Expr *left, const Expr *right);
Expr *expr_call(Parse *p, Name callee, Span span, Arguments args);
Expr *expr_slice(Parse *p, Span span, const Expr *left, Subscripts subscripts);
Expr *expr_list(Parse *p, Span span, Arguments items);
Stmt *stmt_new(Parse *p, StmtKind kind, Span span);
void mark_own_names(Arena *arena, const Arguments *args, const Stmts *body);

#endif
