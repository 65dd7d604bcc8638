/* nodepairs: round trips between pairs of ranks, one rank on each node.
 *
 * Cases of pairs without a common rank are measured at the same time, in rounds: all pairs of n nodes take n - 1 rounds.
 * A case with `alone` = 1 has its own round, since long messages of several pairs may share links. A sample is the time
 * of `trips` round trips on rank `one`, from its first send to its last receive: T = 2 trips (L + o_s + o_r + (s-1) G)
 * under LogGP. The precision option is not used: a case has SAMPLES samples, with `alone` half as many, within the limits.
 *
 *   mpiexec -n 8 nodepairs --cases cases.csv --out samples        cases.csv: id,one,two,nodes,trips,bytes,alone
 */
#include "harness.h"

#include <stdlib.h>

enum { ONE, TWO, NODES, TRIPS, BYTES_COLUMN, ALONE, COLUMNS };
enum { TAG = 0, SAMPLES = 8 };
static const Column columns[COLUMNS] = {
    {"one", "1", "rank that sends first", COUNT},
    {"two", "1", "rank that answers", COUNT},
    {"nodes", "1", "ranks of the program", COUNT},
    {"trips", "1", "round trips of one sample, from 1", COUNT},
    {"bytes", "B", "size of the message, each way", BYTES},
    {"alone", "1", "1: no other pair communicates meanwhile", COUNT},
};

static void check(const Case *c, int ranks)
{
  const Field *f = c->fields;
  require_ranks(c, "one", f[ONE].count + 1, ranks);
  require_ranks(c, "two", f[TWO].count + 1, ranks);
  if (f[ONE].count == f[TWO].count) case_error(c, "two", f[TWO].text, "another rank than one");
  if (f[TRIPS].count < 1 || f[TRIPS].count > 1 << 20) case_error(c, "trips", f[TRIPS].text, "a number from 1 to 1048576");
}

/* The next round: indices of the first remaining case, and of later cases without common ranks; returns their number. */
static int select_round(const Case *cases, int count, const bool *done, bool *busy, int ranks, int *round)
{
  int selected = 0;
  for (int r = 0; r < ranks; r++) busy[r] = false;
  for (int i = 0; i < count; i++) {
    const Field *f = cases[i].fields;
    if (done[i] || busy[f[ONE].count] || busy[f[TWO].count]) continue;
    if (selected > 0 && f[ALONE].count) continue;
    busy[f[ONE].count] = busy[f[TWO].count] = true;
    round[selected++] = i;
    if (f[ALONE].count) break;
  }
  return selected;
}

static void exchange(const Field *f, bool first, const char *sent, char *received)
{
  int bytes = (int)f[BYTES_COLUMN].count, peer = (int)f[first ? TWO : ONE].count;
  for (long long trip = 0; trip < f[TRIPS].count; trip++) {
    if (first) MPI_TRY(MPI_Send(sent, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    MPI_TRY(MPI_Recv(received, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (!first) MPI_TRY(MPI_Send(sent, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
  }
}

/* Seconds of `samples` samples, on rank `one` of a case, after one warm-up. */
static void measure_pair(const Field *f, bool first, int samples, double *seconds)
{
  size_t bytes = (size_t)f[BYTES_COLUMN].count;
  char *sent = allocate_buffer(bytes, 1), *received = allocate_buffer(bytes, 1);
  exchange(f, first, sent, received);
  for (int s = 0; s < samples; s++) {
    double start = clock_now();
    exchange(f, first, sent, received);
    seconds[s] = clock_now() - start;
  }
  free(sent);
  free(received);
}

static int count_samples(const Options *options, int wanted)
{
  if (wanted < options->min_samples) return (int)options->min_samples;
  return wanted > options->max_samples ? (int)options->max_samples : wanted;
}

static void sweep(const Case *cases, int count, const Options *options, const Alignment *a)
{
  int ranks = a->ranks, max_samples = count_samples(options, SAMPLES), remaining = count;
  bool *done = allocate((size_t)count, sizeof *done), *busy = allocate((size_t)ranks, sizeof *busy);
  int *round = allocate((size_t)count, sizeof *round);
  double *own = allocate((size_t)max_samples, sizeof *own);
  double *all = allocate(a->rank == 0 ? (size_t)max_samples * (size_t)ranks : 0, sizeof *all);
  while (remaining > 0) {
    int selected = select_round(cases, count, done, busy, ranks, round);
    int samples = cases[round[0]].fields[ALONE].count ? count_samples(options, SAMPLES / 2) : max_samples;
    if (a->rank == 0) record_current_case(options->out, cases[round[0]].id);
    MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < selected; i++) {
      const Field *f = cases[round[i]].fields;
      if (f[ONE].count == a->rank || f[TWO].count == a->rank) measure_pair(f, f[ONE].count == a->rank, samples, own);
    }
    MPI_TRY(MPI_Gather(own, samples, MPI_DOUBLE, all, samples, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    for (int i = 0; i < selected; i++) {
      const Case *c = &cases[round[i]];
      done[round[i]] = true;
      remaining--;
      if (a->rank == 0) finish_case(options, c, all + (size_t)samples * (size_t)c->fields[ONE].count, NULL, samples);
    }
  }
  free(done);
  free(busy);
  free(round);
  free(own);
  free(all);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "nodepairs", .title = "Round trips between pairs of nodes", .kind = "probe",
      .columns = columns, .ncolumns = COLUMNS, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .sweep = sweep,
  };
  return harness_main(argc, argv, &program);
}
