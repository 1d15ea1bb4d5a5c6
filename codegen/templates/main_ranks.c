/* ---- Ranks: the first one is heard, save where another fails ---- */

static int rank;       /* this one, of NET_RANKS */
static int is_running; /* until then all of them say the same */
static int is_told;    /* another rank says what failed */

/* Joins the world that mpirun made. MPI is called by this thread alone. */
static void join_ranks(int *argc, char ***argv)
{
    int threads;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0 && !freopen("/dev/null", "w", stdout))
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Leaves it. An error of one rank ends all of them; where that rank tells why, it has time to. */
static int leave_ranks(int status, int signal)
{
    const struct timespec a_while = {2, 0};
    if (status != 0 && is_running) {
        if (is_told)
            nanosleep(&a_while, NULL);
        MPI_Abort(MPI_COMM_WORLD, status);
    }
    MPI_Finalize();
    return signal ? 128 + signal : status;
}
