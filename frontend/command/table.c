/* The commands and their options: reading, --help, the man page and the shell's completion all come
 * from these two tables. A new option is a row here and a field of Options. */
#include "frontend/command/kinds.h"

static void show_version(const Command *command)
{
    (void)command;
    puts("gplan " GPLAN_VERSION);
}

static void show_ops(const Command *command)
{
    (void)command;
    ops_reference(stdout);
}

static const char *target_words(void)
{
    static char words[256];
    size_t length = (size_t)snprintf(words, sizeof words, "auto");
    for (size_t i = 0; i < target_count; i++)
        length += (size_t)snprintf(words + length, sizeof words - length, " %s",
                                   target_table[i].plan.name);
    return words;
}

#define FIELD(name) offsetof(Options, name)

/* clang-format off */
const Option option_table[] = {
    {COMPILE, 'o', "output", "FILE", "write FILE; .c and .cu also write the header .h beside it",
     .kind = OPTION_FILE, .field = FIELD(output)},
    {PACK, 'o', "output", "FILE", "write the offsets; .svg draws them; - is standard output",
     .kind = OPTION_FILE, .field = FIELD(output)},
    {REMAT, 'o', "output", "FILE", "write the schedule; - is standard output",
     .kind = OPTION_FILE, .field = FIELD(output)},
    {WEIGHTS, 'o', "output", "FILE", "write the model's weights; without it, nothing but the list is made",
     .kind = OPTION_FILE, .field = FIELD(output)},
    {RUN, 'k', "keep", "DIR",
     "write the C files and the program into DIR, and leave them there; without it, they are gone before "
     "the program begins",
     .kind = OPTION_FILE, .field = FIELD(keep)},
    {COMPILE, 0, "main", NULL,
     "write the program around the model too, FILE_main.c: it trains, evaluates and predicts with the "
     "samples that the model's data statements name",
     .kind = OPTION_FLAG, .field = FIELD(main)},
    {WEIGHTS, 0, "map", "FILE", "what comes from where, for what names and order do not say",
     .kind = OPTION_FILE, .field = FIELD(map)},
    {WEIGHTS, 0, "partial", NULL,
     "parameters that IN has nothing for begin as after a reset, instead of being an error",
     .kind = OPTION_FLAG, .field = FIELD(partial)},
    {COMPILE, 0, "emit", "KIND", "what to write (default: by FILE's extension)",
     .kind = OPTION_TEXT, .field = FIELD(emit), .list = kind_words},
    {PACK, 0, "emit", "KIND", "what to write (default: by FILE's extension, else csv)",
     .kind = OPTION_TEXT, .field = FIELD(emit), .words = "csv svg"},
    {PARAMS, 0, "emit", "KIND", "what to write (default: a table to read)",
     .kind = OPTION_TEXT, .field = FIELD(emit), .words = "csv json"},
    {COMPILE | RUN, 0, "prefix", "NAME",
     "begin emitted symbols with NAME instead of the model's name, so that two plans of one model "
     "link into one program",
     .kind = OPTION_TEXT, .field = FIELD(prefix)},
    {COMPILE, 0, "depth", "N", "in dot and graph, draw a block that is N levels deep as one box",
     .kind = OPTION_COUNT, .field = FIELD(depth), .most = 1024},
    {COMPILE | RUN, 'b', "budget", "SIZE",
     "bytes that the program may use: 8G, 512M, 1.5GiB, 4096 (K, M, G, T are powers of 1024)",
     .kind = OPTION_SIZE, .field = FIELD(budget), .positive = true},
    {REMAT, 'b', "budget", "SIZE",
     "bytes that may be live (8G, 512M, 4096), or a share of the peak of the given order (60%); "
     "min looks for the smallest peak",
     .kind = OPTION_TEXT, .field = FIELD(limit)},
    {PACK, 0, "capacity", "SIZE",
     "stop at a packing of so many bytes; without it, the packing is made as small as possible",
     .kind = OPTION_SIZE, .field = FIELD(capacity), .positive = true},
    {COMPILE | RUN, 0, "reserve", "SIZE", "taken off the budget for others: a CUDA context, the program around it",
     .kind = OPTION_SIZE, .field = FIELD(reserve)},
    {COMPILE | RUN | PARAMS | WEIGHTS, 'D', "define", "NAME=N", "override a parameter of the model, e.g. -D B=64",
     .kind = OPTION_DEFINE, .field = FIELD(define)},
    {COMPILE | RUN | PARAMS, 0, "bind", "NAME=FILE",
     "an input of an ONNX model is known: FILE is a TensorProto, and a constant in its place",
     .kind = OPTION_BIND, .field = FIELD(bind)},
    {COMPILE | RUN, 0, "infer", NULL, "plan the forward pass only",
     .kind = OPTION_FLAG, .field = FIELD(infer)},
    {COMPILE, 0, "train", NULL, "plan the training step too (default where the model has one)",
     .kind = OPTION_FLAG, .field = FIELD(train)},
    {COMPILE | RUN, 0, "programs", "LIST",
     "which of forward, eval and step to plan and write, with commas between them; without forward there "
     "are no outputs but metrics, so step,eval takes no memory for them (default: all that the model "
     "has)",
     .kind = OPTION_TEXT, .field = FIELD(programs)},
    {COMPILE | RUN, 0, "accumulate", "N",
     "run a step as N micro-batches; auto: as many as cost least within the budget (default: as the "
     "model says, and where it says nothing, several only where nothing else fits the budget; 1 "
     "forbids that)",
     .kind = OPTION_COUNT, .field = FIELD(accumulate), .most = 1 << 20,
     .words = "model auto", .word_field = FIELD(accumulate_auto)},
    {COMPILE | RUN, 0, "ranks", "N",
     "write a program for N ranks that MPI connects, or NCCL for a .cu file: each trains on its part of the batch, and gradients "
     "are summed in rank order; --accumulate is of each rank. mpicc compiles it and mpirun -n N starts it; "
     "run does both, with what the variables CC and MPIRUN name",
     .kind = OPTION_COUNT, .field = FIELD(ranks), .most = 1 << 14},
    {COMPILE, 0, "shard", "WHAT",
     "of --ranks, each holds and updates its part alone of the optimizer's state, or gets its part alone of "
     "the gradients, too: none, state, gradients, or auto, the least that the budget asks for; the results "
     "are the same",
     .kind = OPTION_WORD, .field = FIELD(shard), .words = "auto none state gradients"},
    {COMPILE | RUN, 0, "as-ranks", "N",
     "one program that does the work of N ranks, one after the other, with the same sums: the same bits",
     .kind = OPTION_COUNT, .field = FIELD(as_ranks), .most = 1 << 14},
    {COMPILE | RUN, 0, "chunked-loss", "WHEN",
     "compute logits and their loss in chunks of rows, so that the logits are not stored whole: always, "
     "never or auto, where the budget asks for it",
     .kind = OPTION_WORD, .field = FIELD(chunked_loss), .words = "auto always never"},
    {COMPILE | RUN, 0, "precision", "DTYPE",
     "compute products, and what follows them, in bf16 or f16 with f32 sums; parameters and outputs "
     "stay f32; auto: in bf16 where nothing else fits the budget (default: as the model says, else f32)",
     .kind = OPTION_WORD, .field = FIELD(precision), .words = "model f32 f16 bf16 auto"},
    {COMPILE | RUN, 0, "recompute", "HOW", "rematerialize: auto, where the budget asks for it, or none",
     .kind = OPTION_WORD, .field = FIELD(no_recompute), .words = "auto none"},
    {COMPILE | RUN, 0, "epilogues", "WHEN",
     "run elementwise ops inside the matrix product or convolution before them, which is then not "
     "stored: always, never or auto, unless a plan without fits the budget better",
     .kind = OPTION_WORD, .field = FIELD(epilogues), .words = "auto always never"},
    {COMPILE | RUN, 0, "prepare", "WHEN",
     "in inference, compute what hangs on parameters alone once after they were written, and keep it: auto, "
     "as far as the budget has room, or never; the results are the same",
     .kind = OPTION_WORD, .field = FIELD(no_prepared), .words = "auto never"},
    {COMPILE, 0, "min-budget", NULL, 
     "print the smallest budget that fits, and stop; where micro-batches that nobody asked for need "
     "less, a second line has that budget and --accumulate N",
     .kind = OPTION_FLAG, .field = FIELD(min_budget)},
    {COMPILE, 0, "max", "NAME", 
     "print the largest value of a parameter of the model, e.g. the batch, that fits the budget; where "
     "it is larger with micro-batches that nobody asked for, a second line has that value and "
     "--accumulate N",
     .kind = OPTION_TEXT, .field = FIELD(max)},
    {COMPILE, 0, "pareto", NULL,
     "print the extra time that budgets cost, from the smallest to one without recomputation; "
     "--emit csv or json",
     .kind = OPTION_FLAG, .field = FIELD(pareto)},
    {COMPILE, 0, "target", "TARGET", "what the plan is for (default: cuda for a .cu file, else c)",
     .kind = OPTION_WORD, .field = FIELD(target), .list = target_words},
    {COMPILE, 0, "calibrate", NULL,
     "measure this machine and write a profile for --profile, to FILE or standard output; -o link.c: a "
     "program that measures the link between ranks of MPI too, and prints the profile; takes no MODEL",
     .kind = OPTION_FLAG, .field = FIELD(calibrate)},
    {COMPILE | RUN, 0, "profile", "FILE", "estimate times with what --calibrate measured",
     .kind = OPTION_FILE, .field = FIELD(profile)},
    {COMPILE | RUN, 0, "threads", "N", "threads that the emitted code may use, each with its own workspace (default 8)",
     .kind = OPTION_COUNT, .field = FIELD(threads), .most = 1024},
    {COMPILE | RUN, 0, "io", "WHERE", "inputs and outputs in the arena or external: the caller's memory",
     .kind = OPTION_WORD, .field = FIELD(io_external), .words = "arena external"},
    {COMPILE | RUN, 0, "params", "WHERE",
     "parameters in the arena; external: the caller's memory, a mapped file; or, for inference on a "
     "machine without files, embedded=FILE: the weights of a safetensors file as data of the C file",
     .kind = OPTION_WORD, .field = FIELD(params_external), .words = "arena external embedded=FILE",
     .word_field = FIELD(params_file)},
    {COMPILE | RUN, 0, "effort", "N",
     "how much the planner searches, counted, so that every machine finds the same plan",
     .kind = OPTION_LARGE, .field = FIELD(effort)},
    {PACK, 0, "effort", "N", "how much to search, counted (default 1e9: a few seconds)",
     .kind = OPTION_LARGE, .field = FIELD(effort)},
    {REMAT, 0, "effort", "N", "how much to search, counted (default 10000: a few seconds)",
     .kind = OPTION_LARGE, .field = FIELD(effort)},
    {WEIGHTS, 0, "seed", "N", "of what --partial makes",
     .kind = OPTION_LARGE, .field = FIELD(seed), .zero = true},
    {PACK | REMAT, 0, "seed", "N", "another seed, another search",
     .kind = OPTION_LARGE, .field = FIELD(seed), .zero = true},
    {COMPILE | RUN | PACK | REMAT, 0, "seconds", "N",
     "stop the search after this many seconds, even if effort is left",
     .kind = OPTION_SECONDS, .field = FIELD(seconds)},
    {COMPILE | RUN, 0, "report", NULL, "print a report of the plan, beside what else is written",
     .kind = OPTION_FLAG, .field = FIELD(report)},
    {COMPILE, 'd', "dump", "PASS", "print what passes leave; several are separated by commas",
     .kind = OPTION_TEXT, .field = FIELD(dump), .words = "lower train simplify fuse plan"},
    {WEIGHTS, 'v', "verbose", NULL, "list each parameter with what it comes from",
     .kind = OPTION_FLAG, .field = FIELD(verbose)},
    {COMPILE | RUN, 'v', "verbose", NULL, "print each pass as it is done",
     .kind = OPTION_FLAG, .field = FIELD(verbose)},
    {ALL, 'q', "quiet", NULL, "print nothing but errors",
     .kind = OPTION_FLAG, .field = FIELD(quiet)},
    {COMPILE | RUN | PARAMS | WEIGHTS, 0, "color", "WHEN", "color messages",
     .kind = OPTION_WORD, .field = FIELD(color), .words = "auto always never"},
    {ALL, 0, "version", NULL, "print the version", .kind = OPTION_SHOW, .show = show_version},
    {ALL, 'h', "help", NULL, "print this help", .kind = OPTION_SHOW, .show = manual_help},
    {COMPILE, 0, "man", NULL, NULL, .kind = OPTION_SHOW, .show = manual_page},
    {COMPILE, 0, "completion", NULL, NULL, .kind = OPTION_SHOW, .show = manual_completion},
    {COMPILE, 0, "ops", NULL, NULL, .kind = OPTION_SHOW, .show = show_ops},
};
/* clang-format on */
const size_t option_count = sizeof option_table / sizeof *option_table;

/* ---- The commands --------------------------------------------------------------------------- */

static const char about_compile[] = "MODEL is a .g or .onnx file, or - for standard input; the "
                                    "statements of MORE.g are appended to "
                                    "it.\n"
                                    "Without -o or --emit, gplan prints a report of the plan.\n";

static const char about_run[] =
    "MODEL and MORE.g are as for gplan. The program around the model is that of --main: it "
    "trains,\n"
    "evaluates and predicts with the samples that data statements name. Or it is FILE.c, or "
    "several,\n"
    "which include MODEL.h and have main. CC, or cc, compiles them with -O3 -march=native "
    "-fopenmp\n"
    "as far as it takes these, and followed by CFLAGS. What follows -- are the "
    "program's\n"
    "arguments. gplan becomes the program: exit status and signals are its own.\n"
    "\n"
    "    gplan run model.g --budget 512M -- train --epochs 10\n"
    "\n"
    "    $ cat twice.g\n"
    "    model twice(batch B = 1)\n"
    "    input x : f32[B]\n"
    "    output y = 2 * x\n"
    "    $ cat main.c\n"
    "    #include \"twice.h\"\n"
    "    #include <stdio.h>\n"
    "    #include <stdlib.h>\n"
    "    int main(int argc, char **argv)\n"
    "    {\n"
    "        static _Alignas(TWICE_ARENA_ALIGN) unsigned char arena[TWICE_ARENA_BYTES];\n"
    "        twice m;\n"
    "        if (argc != 2 || twice_init(&m, arena, sizeof arena) != TWICE_OK)\n"
    "            return 1;\n"
    "        twice_x(&m)[0] = strtof(argv[1], NULL);\n"
    "        return twice_forward(&m) != TWICE_OK || printf(\"%g\\n\", twice_y(&m)[0]) < 0;\n"
    "    }\n"
    "    $ gplan run twice.g main.c -- 21\n"
    "    42\n";

static const char about_params[] =
    "A parameter is trainable, frozen, running state, which the training step updates itself, "
    "or\n"
    "const. The last column says why: the layer that it is of, or who froze it. Names are those "
    "of\n"
    "the safetensors files that emitted code loads and saves.\n"
    "\n"
    "    $ cat tiny.g\n"
    "    model tiny(batch B = 2)\n"
    "    input x : f32[B, 3]\n"
    "    frozen param shift : [3] = zeros\n"
    "    output y = dense(x + shift, 4, name = \"fc\")\n"
    "    $ gplan params tiny.g | head -n 4\n"
    "    name   dtype  shape   bytes  kind       why\n"
    "    shift  f32    [3]        12  frozen     declared so\n"
    "    fc.w   f32    [3, 4]     48  trainable  w of dense\n"
    "    fc.b   f32    [4]        16  trainable  b of dense\n";

static const char about_weights[] =
    "IN.safetensors is a file of PyTorch or Hugging Face, or several, named one by one; MODEL is "
    "as\n"
    "for gplan. OUT.safetensors is what emitted code loads, or maps. A layer of the model knows\n"
    "PyTorch's names and layouts: dense's w is weight, transposed. Which "
    "layer\n"
    "of the file is which of the model's is taken from names where they are the same, and else "
    "from\n"
    "shapes and the numbers in names. What that leaves open is an error that says what to write\n"
    "into a map. F16, BF16 and F64 become what the model has. Tensors that are not used are "
    "listed.\n"
    "\n"
    "A map has a line for each parameter, or for each group of them; # begins a comment:\n"
    "\n"
    "    MODEL_NAME = NAME[SLICE] transposed\n"
    "    LAYER.* = MODULE.*\n"
    "    ignore NAME\n"
    "\n"
    "NAME is one of IN's; what it begins with may be left out where it is clear without. {i} in\n"
    "MODEL_NAME is any number, and the same in NAME, where {i+1} is one more. A slice is as in "
    "the\n"
    "language, in numbers and parameters of the model: [:, C:2*C]; a single number takes the axis\n"
    "out. transposed swaps the last two axes, after the slice. LAYER.* is all of a layer, by "
    "the\n"
    "names and layouts of PyTorch. ignore leaves out what may be there; * is anything:\n"
    "\n"
    "    layer.{i}.attention.0.wq = h.{i}.attn.c_attn.weight[:, 0:C]\n"
    "    layer.{i}.layernorm.0.* = h.{i}.ln_1.*\n"
    "    ignore *.attn.bias\n";

static const char about_pack[] =
    "PROBLEM.csv has a line for each buffer. The first line names the columns, in any order: id,\n"
    "lower, upper, size and, where they are wanted, alignment and offset. A buffer lives from "
    "lower\n"
    "up to, but not including, upper. An offset that is not empty is kept. What is written has "
    "the\n"
    "offset of every buffer.\n"
    "\n"
    "    $ cat problem.csv\n"
    "    id,lower,upper,size\n"
    "    a,0,3,4\n"
    "    b,3,9,4\n"
    "    c,0,9,4\n"
    "    $ gplan pack problem.csv --quiet -o -\n"
    "    id,lower,upper,size,offset\n"
    "    a,0,3,4,4\n"
    "    b,3,9,4,4\n"
    "    c,0,9,4,0\n";

static const char about_remat[] =
    "PROBLEM is lines with names; # begins a comment:\n"
    "\n"
    "    node NAME size=BYTES cost=TIME [work=BYTES] [once] [output]\n"
    "    edge FROM TO\n"
    "    NAME: INPUT INPUT ...\n"
    "\n"
    "While a node runs, its inputs, its result and its workspace (work) are live; a result is "
    "freed\n"
    "after its last use. A node that is marked once never runs twice; an output stays to the end.\n"
    "The schedule is a node a line, in the order in which they run:\n"
    "\n"
    "    $ cat chain.graph\n"
    "    node a size=4 cost=1\n"
    "    node b size=4 cost=1\n"
    "    node c size=4 cost=1\n"
    "    node d size=1 cost=1\n"
    "    b: a\n"
    "    c: b\n"
    "    d: c a\n"
    "    $ gplan remat chain.graph --budget 9 --quiet -o -\n"
    "    a\n"
    "    b\n"
    "    c\n"
    "    a\n"
    "    d\n"
    "\n"
    "Or it is numbers alone: NODES EDGES, then SIZE COST for each node in a valid order, then "
    "FROM\n"
    "TO for each edge, with nodes counted from 0. The schedule is then numbers too:\n"
    "\n"
    "    $ cat pair.graph\n"
    "    2 1\n"
    "    4 1\n"
    "    4 1\n"
    "    0 1\n"
    "    $ gplan remat pair.graph --budget 100% --quiet -o -\n"
    "    0\n"
    "    1\n";

static const char about_verify[] =
    "PLAN.json is what gplan MODEL -o PLAN.json writes, or what another tool wrote in that "
    "format:\n"
    "codegen/PLAN.md describes it. The checker shares no code with the planner.\n";

/* clang-format off */
const Command command_table[] = {
    {"", "gplan", "MODEL", "MODEL [MORE.g ...] [-o FILE]",
     "plan every byte of a neural network's memory, and emit C or CUDA that runs inside a budget",
     about_compile, COMPILE, SIZE_MAX, .run = compile_main},
    {"run", "gplan run", "MODEL", "MODEL [MORE.g ...] [FILE.c ...]",
     "plan a model, emit it, compile it and run it",
     about_run, RUN, SIZE_MAX, .run = run_main, .rest = "[-- ARGUMENTS]"},
    {"params", "gplan params", "MODEL", "MODEL [MORE.g ...]",
     "list a model's parameters: name, shape, bytes, and whether they are trained",
     about_params, PARAMS, SIZE_MAX, .run = params_main},
    {"weights", "gplan weights", "IN.safetensors", "IN.safetensors MODEL -o OUT.safetensors",
     "bring another tool's weights to the names and layouts of a model",
     about_weights, WEIGHTS, SIZE_MAX, .run = weights_main},
    {"pack", "gplan pack", "PROBLEM.csv", "PROBLEM.csv",
     "find an offset for every buffer, so that no two that are live together share a byte",
     about_pack, PACK, 1, .run = pack_main},
    {"remat", "gplan remat", "PROBLEM", "PROBLEM --budget SIZE",
     "find the cheapest order to run a graph within a budget, some nodes more than once",
     about_remat, REMAT, 1, .run = remat_main},
    {"verify", "gplan verify", "PLAN.json", "PLAN.json",
     "check a plan, whoever made it",
     about_verify, VERIFY, 1, .run = verify_main},
};
/* clang-format on */
const size_t command_count = sizeof command_table / sizeof *command_table;
