/* Tokens -> syntax tree. A syntax error costs the statement it stands in; parsing goes on with the
 * next one, so one run reports them all. */
%require "3.8"
%define api.prefix {gp_yy}
%define api.pure full
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%param {Parse *p}

%code requires {
#include "frontend/ast.h"
}

%code {
#include "frontend/base/names.h"

#include <stdlib.h>
#include <string.h>

int gp_yylex(GP_YYSTYPE *value, Span *span, Parse *p);
const char *lexer_keyword_like(const char *word);

#define YYMAXDEPTH 10000
#define YYMALLOC memory_take
#define YYFREE free
#define YYLLOC_DEFAULT(current, rhs, n)                                                            \
    ((current) = (n) ? (Span){YYRHSLOC(rhs, 1).line, YYRHSLOC(rhs, 1).column,                     \
                               YYRHSLOC(rhs, n).end_line, YYRHSLOC(rhs, n).end}                    \
                     : (Span){YYRHSLOC(rhs, 0).end_line, YYRHSLOC(rhs, 0).end,                    \
                               YYRHSLOC(rhs, 0).end_line, YYRHSLOC(rhs, 0).end})

static void gp_yyerror(const Span *span, Parse *p, const char *message)
{
    (void)message; /* the one that bison has of its own: its stack is full */
    diag_error(p->diag, *span, "the expression is nested too deeply");
    p->fatal = true;
}

/* A word that means something only here. */
static bool expect_word(Parse *p, Name name, const char *word, const char *usage)
{
    if (strcmp(name.text, word) == 0)
        return true;
    diag_error(p->diag, name.span, "expected '%s', not '%s'", word, name.text);
    diag_hint(p->diag, "%s", usage);
    return false;
}
}

%union {
    int64_t integer;
    double number;
    Name name;
    Names names;
    Argument argument;
    Arguments arguments;
    Subscript subscript;
    Subscripts subscripts;
    Expr *expr;
    Stmt *stmt;
    Stmts stmts;
    Type type;
    int flags;
}

%token END "end of line"
%token MODEL "model" INPUT "input" PARAM "param" CONST "const" OUTPUT "output" BLOCK "block"
%token METRIC "metric" DATA "data"
%token REPEAT "repeat" TRAIN "train" KEEP "keep" RECOMPUTE "recompute" FROZEN "frozen"
%token SHARED "shared" CHECKPOINT "checkpoint" RETURN "return"
%token TRUE "true" FALSE "false"
%token <name> NAME "a name" STRING "a string" BITS "8bit"
%token <integer> INT "a number"
%token <number> FLOAT "a float"
%token DOTS ".." ELLIPSIS "..." ARROW "->"
%token EQUAL "==" NOT_EQUAL "!=" LESS_EQUAL "<=" GREATER_EQUAL ">="

%nonassoc EQUAL NOT_EQUAL LESS_EQUAL GREATER_EQUAL '<' '>'
%left '+' '-'
%left '*' '/' '@'
%precedence NEGATE

%type <stmts> statements body
%type <stmt> statement declaration action
%type <expr> expr primary optional
%type <arguments> arguments argument_list items item_list parameters parameter_list optimizer
%type <argument> argument parameter
%type <subscripts> subscripts
%type <subscript> subscript
%type <type> type
%type <names> names
%type <flags> block_marks
%type <name> name

%%

file
    : statements { p->ast->body = $1; }
    ;

statements
    : %empty { $$ = (Stmts){0}; }
    | statements END
    | statements statement END {
          $$ = $1;
          if ($2)
              ARRAY_PUSH(p->arena, &$$, $2);
      }
    | statements error END { $$ = $1; yyerrok; }
    ;

body
    : '{' statements '}' { $$ = $2; }
    ;

statement
    : declaration
    | action
    ;

declaration
    : MODEL NAME { $$ = stmt_new(p, STMT_MODEL, @$); $$->name = $2; }
    | MODEL NAME '(' parameters ')' {
          $$ = stmt_new(p, STMT_MODEL, @$);
          $$->name = $2;
          $$->arg = $4;
      }
    | INPUT name ':' type { $$ = stmt_new(p, STMT_INPUT, @$); $$->name = $2; $$->type = $4; }
    | PARAM name ':' type { $$ = stmt_new(p, STMT_PARAM, @$); $$->name = $2; $$->type = $4; }
    | PARAM name ':' type '=' expr {
          $$ = stmt_new(p, STMT_PARAM, @$);
          $$->name = $2;
          $$->type = $4;
          $$->value = $6;
      }
    | FROZEN PARAM name ':' type {
          $$ = stmt_new(p, STMT_PARAM, @$);
          $$->name = $3;
          $$->type = $5;
          $$->frozen = true;
      }
    | FROZEN PARAM name ':' type '=' expr {
          $$ = stmt_new(p, STMT_PARAM, @$);
          $$->name = $3;
          $$->type = $5;
          $$->value = $7;
          $$->frozen = true;
      }
    | CONST name '=' expr { $$ = stmt_new(p, STMT_CONST, @$); $$->name = $2; $$->value = $4; }
    | CONST name ':' type {
          $$ = stmt_new(p, STMT_CONST, @$);
          $$->name = $2;
          $$->type = $4;
      }
    | CONST name ':' type '=' expr {
          $$ = stmt_new(p, STMT_CONST, @$);
          $$->name = $2;
          $$->type = $4;
          $$->value = $6;
      }
    | DATA NAME '=' NAME '(' arguments ')' ARROW names {
          $$ = stmt_new(p, STMT_DATA, @$);
          $$->name = $2;
          $$->format = $4;
          $$->arg = $6;
          $$->target = $9;
      }
    | block_marks BLOCK NAME '(' parameters ')' body {
          $$ = stmt_new(p, STMT_BLOCK, @2);
          $$->name = $3;
          $$->arg = $5;
          $$->body = $7;
          $$->end = (Span){@7.end_line, @7.end - 1, @7.end_line, @7.end};
          $$->shared = $1 & 1;
          $$->hint = $1 & 2 ? HINT_CHECKPOINT : 0;
          $$->template = p->templates++;
          mark_own_names(p->arena, &$$->arg, &$$->body);
      }
    ;

block_marks
    : %empty { $$ = 0; }
    | block_marks SHARED { $$ = $1 | 1; }
    | block_marks CHECKPOINT { $$ = $1 | 2; }
    ;

action
    : names '=' expr { $$ = stmt_new(p, STMT_ASSIGN, @$); $$->target = $1; $$->value = $3; }
    | OUTPUT name { $$ = stmt_new(p, STMT_OUTPUT, @$); $$->name = $2; }
    | OUTPUT name '=' expr { $$ = stmt_new(p, STMT_OUTPUT, @$); $$->name = $2; $$->value = $4; }
    | METRIC name '=' expr { $$ = stmt_new(p, STMT_METRIC, @$); $$->name = $2; $$->value = $4; }
    | REPEAT NAME NAME expr DOTS expr body {
          $$ = stmt_new(p, STMT_REPEAT, @1);
          $$->name = $2;
          $$->value = $4;
          $$->stop = $6;
          $$->body = $7;
          $$->template = p->templates++;
          if (!expect_word(p, $3, "in", "repeat i in 0..4 { ... }"))
              $$ = NULL;
      }
    | TRAIN expr NAME NAME optimizer {
          $$ = stmt_new(p, STMT_TRAIN, @$);
          $$->value = $2;
          $$->name = $4;
          $$->arg = $5;
          if (!expect_word(p, $3, "using", "train LOSS using adam(lr = 1e-3)"))
              $$ = NULL;
      }
    | TRAIN expr NAME NAME optimizer body {
          $$ = stmt_new(p, STMT_TRAIN, @1);
          $$->value = $2;
          $$->name = $4;
          $$->arg = $5;
          $$->body = $6;
          if (!expect_word(p, $3, "using", "train LOSS using adam(lr = 1e-3) { ... }"))
              $$ = NULL;
      }
    | NAME STRING body {
          $$ = stmt_new(p, STMT_GROUP, @2);
          $$->name = $2;
          $$->body = $3;
          if (!expect_word(p, $1, "group", "group \"*.b\" { weight_decay = 0 }"))
              $$ = NULL;
      }
    | NAME STRING '=' expr {
          $$ = stmt_new(p, STMT_PRECISION, @$);
          $$->name = $2;
          $$->value = $4;
          if (!expect_word(p, $1, "precision", "precision \"head.*\" = f32"))
              $$ = NULL;
      }
    | RETURN item_list { $$ = stmt_new(p, STMT_RETURN, @$); $$->arg = $2; }
    | KEEP names { $$ = stmt_new(p, STMT_HINT, @$); $$->target = $2; $$->hint = HINT_KEEP; }
    | RECOMPUTE names {
          $$ = stmt_new(p, STMT_HINT, @$);
          $$->target = $2;
          $$->hint = HINT_RECOMPUTE;
      }
    | expr { $$ = stmt_new(p, STMT_EXPR, @$); $$->value = $1; }
    ;

optimizer
    : %empty { $$ = (Arguments){0}; }
    | '(' arguments ')' { $$ = $2; }
    ;

name
    : NAME
    | STRING
    ;

names
    : name { $$ = (Names){0}; ARRAY_PUSH(p->arena, &$$, $1); }
    | names ',' name { $$ = $1; ARRAY_PUSH(p->arena, &$$, $3); }
    ;

type
    : '[' items ']' { $$ = (Type){.dim = $2, .span = @$, .given = true}; }
    | NAME { $$ = (Type){.dtype = $1, .span = @$, .given = true}; }
    | NAME '[' items ']' { $$ = (Type){.dtype = $1, .dim = $3, .span = @$, .given = true}; }
    ;

parameters
    : %empty { $$ = (Arguments){0}; }
    | parameter_list
    | parameter_list ','
    ;

parameter_list
    : parameter { $$ = (Arguments){0}; ARRAY_PUSH(p->arena, &$$, $1); }
    | parameter_list ',' parameter { $$ = $1; ARRAY_PUSH(p->arena, &$$, $3); }
    ;

parameter
    : NAME { $$ = (Argument){.name = $1}; }
    | NAME '=' expr { $$ = (Argument){.name = $1, .value = $3}; }
    | NAME NAME { $$ = (Argument){.name = $2, .mark = $1}; }
    | NAME NAME '=' expr { $$ = (Argument){.name = $2, .value = $4, .mark = $1}; }
    ;

arguments
    : %empty { $$ = (Arguments){0}; }
    | argument_list
    | argument_list ','
    ;

argument_list
    : argument { $$ = (Arguments){0}; ARRAY_PUSH(p->arena, &$$, $1); }
    | argument_list ',' argument { $$ = $1; ARRAY_PUSH(p->arena, &$$, $3); }
    ;

argument
    : expr { $$ = (Argument){.value = $1}; }
    | NAME '=' expr { $$ = (Argument){.name = $1, .value = $3}; }
    ;

items
    : %empty { $$ = (Arguments){0}; }
    | item_list
    | item_list ','
    ;

item_list
    : expr { $$ = (Arguments){0}; ARRAY_PUSH(p->arena, &$$, (Argument){.value = $1}); }
    | item_list ',' expr { $$ = $1; ARRAY_PUSH(p->arena, &$$, (Argument){.value = $3}); }
    ;

expr
    : primary
    | '-' expr %prec NEGATE { $$ = expr_unary(p, EXPR_NEG, @$, $2); }
    | expr '@' expr { $$ = expr_binary(p, "matmul", @2, $1, $3); }
    | expr '*' expr { $$ = expr_binary(p, "mul", @2, $1, $3); }
    | expr '/' expr { $$ = expr_binary(p, "div", @2, $1, $3); }
    | expr '+' expr { $$ = expr_binary(p, "add", @2, $1, $3); }
    | expr '-' expr { $$ = expr_binary(p, "sub", @2, $1, $3); }
    | expr '<' expr { $$ = expr_binary(p, "less", @2, $1, $3); }
    | expr '>' expr { $$ = expr_binary(p, "greater", @2, $1, $3); }
    | expr LESS_EQUAL expr { $$ = expr_binary(p, "less_equal", @2, $1, $3); }
    | expr GREATER_EQUAL expr { $$ = expr_binary(p, "greater_equal", @2, $1, $3); }
    | expr EQUAL expr { $$ = expr_binary(p, "equal", @2, $1, $3); }
    | expr NOT_EQUAL expr { $$ = expr_binary(p, "not_equal", @2, $1, $3); }
    ;

primary
    : INT { $$ = expr_new(p, EXPR_INT, @$); $$->integer = $1; }
    | FLOAT { $$ = expr_new(p, EXPR_FLOAT, @$); $$->number = $1; }
    | TRUE { $$ = expr_new(p, EXPR_BOOL, @$); $$->integer = 1; }
    | FALSE { $$ = expr_new(p, EXPR_BOOL, @$); }
    | STRING { $$ = expr_new(p, EXPR_STRING, @$); $$->text = $1.text; }
    | NAME { $$ = expr_new(p, EXPR_NAME, @$); $$->text = $1.text; }
    | BITS { $$ = expr_new(p, EXPR_NAME, @$); $$->text = $1.text; }
    | NAME '(' arguments ')' { $$ = expr_call(p, $1, @$, $3); }
    | '(' expr ')' { $$ = $2; }
    | '[' items ']' { $$ = expr_list(p, @$, $2); }
    | primary '[' subscripts ']' { $$ = expr_slice(p, @$, $1, $3); }
    ;

subscripts
    : subscript { $$ = (Subscripts){0}; ARRAY_PUSH(p->arena, &$$, $1); }
    | subscripts ',' subscript { $$ = $1; ARRAY_PUSH(p->arena, &$$, $3); }
    ;

optional
    : %empty { $$ = NULL; }
    | expr
    ;

subscript
    : expr { $$ = (Subscript){.kind = SUBSCRIPT_INDEX, .start = $1, .span = @$}; }
    | ELLIPSIS { $$ = (Subscript){.kind = SUBSCRIPT_ELLIPSIS, .span = @$}; }
    | optional ':' optional {
          $$ = (Subscript){.kind = SUBSCRIPT_RANGE, .start = $1, .stop = $3, .span = @$};
          if (!$1)
              $$.span = @2;
      }
    | optional ':' optional ':' optional {
          $$ = (Subscript){SUBSCRIPT_RANGE, $1, $3, $5, @$};
          if (!$1)
              $$.span = @2;
      }
    ;

%%

/* What could stand here, in the user's terms: not every operator that could go on. */
static const char *expected(const yypcontext_t *context, Parse *p)
{
    yysymbol_kind_t symbol[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, symbol, YYNTOKENS);
    const char *word[YYNTOKENS];
    int words = 0;
    bool has[YYNTOKENS] = {0};
    for (int i = 0; i < count; i++)
        has[symbol[i]] = true;
    if (has[YYSYMBOL_MODEL])
        return "a statement";
    bool expression = has[YYSYMBOL_INT] && has[YYSYMBOL_NAME];
    if (expression)
        word[words++] = "an expression";
    static const yysymbol_kind_t shown[] = {
        YYSYMBOL_NAME,  YYSYMBOL_STRING, YYSYMBOL_PARAM, YYSYMBOL_BLOCK, YYSYMBOL_DOTS,
        YYSYMBOL_ARROW, YYSYMBOL_END,
    };
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (has[shown[i]] && !(expression && shown[i] <= YYSYMBOL_STRING))
            word[words++] = yysymbol_name(shown[i]);
    for (int i = 0; i < count; i++) {
        const char *name = yysymbol_name(symbol[i]);
        if (name[0] == '\'' && strchr("){}]:,=", name[1]))
            word[words++] = name;
        else if (name[0] == '\'' && strchr("([", name[1]) && count == 1)
            word[words++] = name;
    }
    if (!words || words > 5)
        return NULL;
    const char *text = word[0];
    for (int i = 1; i < words; i++)
        text = arena_printf(p->arena, "%s%s%s", text, i + 1 < words ? ", " : " or ", word[i]);
    return text;
}

static const char *token_text(const yypcontext_t *context, Parse *p)
{
    yysymbol_kind_t token = yypcontext_token(context);
    if (token == YYSYMBOL_YYEOF)
        return "end of file";
    const char *text = p->source->text + p->token_offset;
    if (token == YYSYMBOL_END && *text != ';')
        return *text == '}' ? "'}'" : "end of line";
    int length = p->token_length < 40 ? (int)p->token_length : 40;
    return arena_printf(p->arena, "'%.*s'", length, text);
}

/* The keyword that the first word of the statement was probably meant to be. */
static const char *misspelt(const yypcontext_t *context, const Parse *p)
{
    bool near = p->last_name.text && yypcontext_token(context) == YYSYMBOL_NAME &&
                p->last_name.span.line == yypcontext_location(context)->line;
    return near ? lexer_keyword_like(p->last_name.text) : NULL;
}

static int yyreport_syntax_error(const yypcontext_t *context, Parse *p)
{
    if (p->fatal)
        return 0;
    Span span = *yypcontext_location(context);
    const Bracket *bracket = p->brackets ? &p->bracket[p->brackets - 1] : NULL;
    if (bracket && bracket->open != '{' && p->line_start) {
        diag_error(p->diag, bracket->span, "this '%c' is never closed", bracket->open);
        const char *wanted = expected(context, p);
        diag_note(p->diag, span, "expected %s before this", wanted ? wanted : "its end");
    } else {
        const char *keyword = misspelt(context, p);
        const char *wanted = keyword ? NULL : expected(context, p);
        diag_error(p->diag, span, "unexpected %s%s%s", token_text(context, p),
                   wanted ? ", expected " : "", wanted ? wanted : "");
        if (keyword)
            diag_hint(p->diag, "did you mean '%s'?", keyword);
    }
    p->error_line = span.line;
    lexer_recover(p);
    return 0;
}

const char *parse_intern(Parse *p, const char *text, size_t length)
{
    const char *copy = arena_copy(p->arena, text, length);
    uint32_t *symbol = names_at(p->symbols, copy);
    if (*symbol == UINT32_MAX) {
        *symbol = (uint32_t)p->interned.count;
        ARRAY_PUSH(p->arena, &p->interned, copy);
    }
    return p->interned.at[*symbol];
}

Ast *parse(Arena *arena, Diag *diag, const Source *source)
{
    Parse *p = ARENA_NEW(arena, Parse);
    p->arena = arena;
    p->diag = diag;
    p->source = source;
    p->symbols = names_new(arena);
    p->ast = ARENA_NEW(arena, Ast);
    diag_source(diag, source);
    int errors = diag_errors(diag);
    lexer_begin(p);
    gp_yyparse(p);
    lexer_end(p);
    if (diag_errors(diag) > errors)
        return NULL;
    mark_own_names(arena, NULL, &p->ast->body);
    return p->ast;
}
