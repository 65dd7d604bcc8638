/* memory: copies by the ranks 0..procs-1 of one node at once, each of `bytes` from its own buffer to another of its own.
 *
 * Each rank is bound to a core; cores of a socket are used before those of the next one. A sample is the time from the
 * start of the first rank to the end of the last one, by the clock that the processes of a node share. Buffers are always
 * the same, so short ones stay in caches. With short ones, a sample repeats the copy until each rank has copied
 * SAMPLE_BYTES, and is divided by the repeats. The precision option is not used: a case has SAMPLES samples, unless
 * fewer are allowed. A sample counts the sockets of the ranks that copy, 0 if they are unknown.
 *
 * Copied bytes a second are procs * bytes / seconds. STREAM's copy counts each byte twice, as read and as written.
 *
 * Under SimGrid computation takes no simulated time. There, each rank sends a message of `bytes` to the next one of the node
 * instead, which takes the time that the simulated node needs for messages within it.
 *
 *   mpiexec -n 8 memory --cases cases.csv --out samples        cases.csv: id,procs,bytes
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { PROCS_COLUMN, BYTES_COLUMN, COLUMNS };
enum { TAG = 0, SAMPLES = 5, SAMPLE_BYTES = 16 << 20 };
static const Column columns[COLUMNS] = {
    {"procs", "1", "ranks that copy", COUNT},
    {"bytes", "B", "bytes that each of them copies", BYTES},
};

typedef struct {
  int rank, procs;
  size_t bytes;
  char *from, *to;
} Copier;

static void check(const Case *c, int ranks)
{
  const Field *procs = &c->fields[PROCS_COLUMN], *bytes = &c->fields[BYTES_COLUMN];
  if (procs->count < 1) case_error(c, "procs", procs->text, "a whole number from 1");
  require_ranks(c, "procs", procs->count, ranks);
  if (bytes->count < 1) case_error(c, "bytes", bytes->text, "a whole number from 1");
}

#if COMMODEL_SIMULATED
/* Simulated ranks share the memory of such buffers, so that a large node fits into this machine. */
static char *allocate_copy(size_t bytes) { return SMPI_SHARED_MALLOC(bytes); }
static void free_copy(char *buffer) { SMPI_SHARED_FREE(buffer); }
static void wait_idly(MPI_Request *request) { MPI_TRY(MPI_Wait(request, MPI_STATUS_IGNORE)); }
static int count_repeats(size_t bytes) { return (void)bytes, 1; }

static void copy(const Copier *own)
{
  int after = (own->rank + 1) % own->procs, before = (own->rank + own->procs - 1) % own->procs;
  MPI_TRY(MPI_Sendrecv(own->from, (int)own->bytes, MPI_BYTE, after, TAG, own->to, (int)own->bytes, MPI_BYTE, before, TAG,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
#else
static char *allocate_copy(size_t bytes) { return allocate_buffer(bytes, 1); }
static void free_copy(char *buffer) { free(buffer); }

/* Waits without occupying a core, which may share execution units with that of a rank that copies. */
static void wait_idly(MPI_Request *request)
{
  const struct timespec pause = {.tv_nsec = 100000};
  int done = 0;
  while (!done) {
    nanosleep(&pause, NULL);
    MPI_TRY(MPI_Test(request, &done, MPI_STATUS_IGNORE));
  }
}

static int count_repeats(size_t bytes) { return bytes < SAMPLE_BYTES ? (int)(SAMPLE_BYTES / bytes) : 1; }
static void copy(const Copier *own) { copy_bytes(own->to, own->from, own->bytes); }
#endif

static int count_samples(const Options *options)
{
  long long wanted = options->enough_equal > 0 ? options->enough_equal : SAMPLES;
  return (int)(wanted > options->max_samples ? options->max_samples : wanted);
}

/* Rank 0: the seconds of one copy of each rank. Idle ranks neither start nor end. */
static double measure_copies(const Copier *own, int repeats)
{
  double stamps[2] = {-INFINITY, -INFINITY}, latest[2];
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  if (own->rank < own->procs) {
    stamps[0] = -clock_now();
    for (int i = 0; i < repeats; i++) copy(own);
    stamps[1] = clock_now();
  }
  MPI_Request request;
  MPI_TRY(MPI_Ireduce(stamps, latest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD, &request));
  if (own->rank < own->procs)
    MPI_TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
  else
    wait_idly(&request);
  return (latest[0] + latest[1]) / repeats;
}

/* The sockets of the first ranks; 0 if one is unknown. */
static int count_sockets(const int *sockets, int procs)
{
  int count = 0;
  for (int i = 0; i < procs; i++) {
    bool is_first = true;
    if (sockets[i] < 0) return 0;
    for (int j = 0; j < i; j++) is_first = is_first && sockets[j] != sockets[i];
    count += is_first;
  }
  return count;
}

static void measure_case_of(const Case *c, const Options *options, int rank, const int *sockets)
{
  Copier own = {.rank = rank, .procs = (int)c->fields[PROCS_COLUMN].count, .bytes = (size_t)c->fields[BYTES_COLUMN].count};
  int samples = count_samples(options), repeats = count_repeats(own.bytes);
  double *seconds = allocate((size_t)samples, sizeof *seconds), *counts = allocate((size_t)samples, sizeof *counts);
  if (rank == 0) record_current_case(options->out, c->id);
  if (rank < own.procs) {
    own.from = allocate_copy(own.bytes);
    own.to = allocate_copy(own.bytes);
  }
  measure_copies(&own, repeats); /* warm-up */
  for (int i = 0; i < samples; i++) {
    seconds[i] = measure_copies(&own, repeats);
    if (rank == 0) counts[i] = count_sockets(sockets, own.procs);
  }
  if (rank == 0) finish_case(options, c, seconds, counts, samples);
  if (rank < own.procs) {
    free_copy(own.from);
    free_copy(own.to);
  }
  free(seconds);
  free(counts);
}

static void sweep(const Case *cases, int count, const Options *options, const Alignment *a)
{
  int own = bind_to_core(a->rank, a->ranks);
  int *sockets = allocate((size_t)a->ranks, sizeof *sockets);
  MPI_TRY(MPI_Gather(&own, 1, MPI_INT, sockets, 1, MPI_INT, 0, MPI_COMM_WORLD));
  for (int i = 0; i < count; i++) measure_case_of(&cases[i], options, a->rank, sockets);
  free(sockets);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "memory", .title = "Copies by all processes of a node", .kind = "probe",
      .columns = columns, .ncolumns = COLUMNS, .min_ranks = 1, .timing = TIMED_BY_ROOT,
      .check = check, .sweep = sweep,
  };
  return harness_main(argc, argv, &program);
}
