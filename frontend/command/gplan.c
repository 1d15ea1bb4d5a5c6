/* gplan: the program. Its commands are the rows of command_table (table.c). */
#include "frontend/command/options.h"

int main(int argc, char **argv)
{
    int status = command_main(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
        fprintf(stderr, "gplan: standard output cannot be written\n");
        status = 1;
    }
    return status;
}
