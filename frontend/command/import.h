/* Models that are not written in the language: an ONNX file, as text and weights. */
#ifndef GPLAN_COMMAND_IMPORT_H
#define GPLAN_COMMAND_IMPORT_H

#include "frontend/command/options.h"

/* The model that the file holds; NULL with a message. */
OnnxImport *import_read(Arena *arena, Diag *diag, const char *path, const Options *o);
/* Its weights as a safetensors file: what import_stream writes. */
const void *import_weights(Arena *arena, const OnnxImport *import);
bool import_stream(int file, const void *weights);
bool import_may_replace(const char *path); /* there is no file, or one that was written so */

#endif
