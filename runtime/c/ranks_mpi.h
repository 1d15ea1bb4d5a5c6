/* Ranks that MPI connects: point-to-point messages, so that it needs no memory for what it moves.
 * Everything goes through a communicator of our own: the caller's messages are never met. */
#ifndef GP_RANKS_MPI_H
#define GP_RANKS_MPI_H

#include "ranks.h"
#include "rng.h"

#include <mpi.h>

_Static_assert(sizeof(MPI_Comm) <= sizeof(uint64_t) && sizeof(MPI_Request) <= sizeof(gp_message),
               "MPI has larger handles than were planned for");

GP_HOST MPI_Comm gp_mpi_world(const gp_ranks *r)
{
    MPI_Comm world;
    memcpy(&world, &r->world, sizeof world);
    return world;
}

/* A request as a message; never 0, though a handle may be. */
GP_HOST int gp_mpi_keep(gp_ranks *r, int code, MPI_Request request, gp_message *m)
{
    char why[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, why, &length);
        gp_ranks_fail(r, "MPI: %.*s", length < 150 ? length : 150, why);
        return -1;
    }
    *m = 0;
    memcpy(m, &request, sizeof request);
    *m ^= UINT64_C(1) << 63;
    return 0;
}

GP_HOST int gp_mpi_send(gp_ranks *r, const void *from, size_t bytes, int rank, int tag,
                        gp_message *m)
{
    MPI_Request request;
    const int code = MPI_Isend(from, (int)bytes, MPI_BYTE, rank, tag, gp_mpi_world(r), &request);
    return gp_mpi_keep(r, code, request, m);
}

GP_HOST int gp_mpi_receive(gp_ranks *r, void *to, size_t bytes, int rank, int tag, gp_message *m)
{
    MPI_Request request;
    const int code = MPI_Irecv(to, (int)bytes, MPI_BYTE, rank, tag, gp_mpi_world(r), &request);
    return gp_mpi_keep(r, code, request, m);
}

GP_HOST int gp_mpi_test(gp_ranks *r, gp_message *m)
{
    const gp_message raw = *m ^ UINT64_C(1) << 63;
    MPI_Request request;
    int done = 0;
    memcpy(&request, &raw, sizeof request);
    const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done && code == MPI_SUCCESS ? 1 : gp_mpi_keep(r, code, request, m);
}

GP_HOST int gp_mpi_heard(gp_ranks *r, int tag, char *text)
{
    MPI_Status status;
    int here = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, gp_mpi_world(r), &here, &status) != MPI_SUCCESS)
        return gp_mpi_keep(r, MPI_ERR_OTHER, MPI_REQUEST_NULL, NULL);
    if (!here)
        return 0;
    MPI_Recv(text, GP_RANKS_TEXT, MPI_BYTE, status.MPI_SOURCE, tag, gp_mpi_world(r),
             MPI_STATUS_IGNORE);
    text[GP_RANKS_TEXT - 1] = 0;
    return 1 + status.MPI_SOURCE;
}

/* Begins with a communicator of the caller's. `plan`: a hash of the program, the same on all
 * ranks. */
GP_HOST int gp_mpi_begin(gp_ranks *r, size_t bytes, int sums, int ranks, uint64_t plan,
                         const void *communicator)
{
    static const gp_link link = {gp_mpi_send, gp_mpi_receive, gp_mpi_test, gp_mpi_heard};
    MPI_Comm given, world;
    int rank, size, begun = 0;
    double none = 0;
    gp_ranks_begin(r, bytes, sums, 0, ranks);
    MPI_Initialized(&begun);
    if (!communicator || !begun)
        return gp_ranks_fail(r,
                             "there is no communicator: call MPI_Init, and give a pointer to one");
    memcpy(&given, communicator, sizeof given);
    MPI_Comm_size(given, &size);
    if (size != ranks)
        return gp_ranks_fail(r,
                             "the program is for %d ranks, but the communicator has %d: start it "
                             "by mpirun -n %d",
                             ranks, size, ranks);
    if (MPI_Comm_dup(given, &world) != MPI_SUCCESS)
        return gp_ranks_fail(r, "MPI has no further communicator");
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &rank);
    r->rank = rank;
    r->link = link;
    memcpy(&r->world, &world, sizeof world);
    return gp_ranks_total(r, &none, plan, "another program");
}

/* Gives the communicator back, on all ranks. */
GP_HOST void gp_mpi_end(gp_ranks *r)
{
    MPI_Comm world = gp_mpi_world(r);
    int over = 0;
    MPI_Finalized(&over);
    if (r->link.send && !over && !r->failed)
        MPI_Comm_free(&world);
    r->link.send = NULL;
}

#endif
