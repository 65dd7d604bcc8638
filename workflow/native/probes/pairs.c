/* pairs: ranks k and k + pairs (k < pairs) exchange one ping-pong, all pairs at the same time.
 *
 * From the common start until the last pair has finished: T = 2 (L + o_s + o_r + (s-1) G) under LogGP for any number of
 * pairs. Additional time is contention on a shared network or in shared memory.
 *
 *   mpiexec -n 8 pairs --cases cases.csv --out samples        cases.csv: id,pairs,bytes
 */
#include "roundtrip.h"

enum { PAIRS_COLUMN, BYTES_COLUMN };
static const Column columns[] = {
    {"pairs", "1", "pairs of ranks, from 1", COUNT},
    {"bytes", "B", "size of the message, each way", BYTES},
};

static void check(const Case *c, int ranks)
{
  const Field *pairs = &c->fields[PAIRS_COLUMN];
  if (pairs->count < 1) case_error(c, "pairs", pairs->text, "a whole number from 1");
  require_ranks(c, "pairs", 2 * pairs->count, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  int rank = run->rank, pairs = (int)c->fields[PAIRS_COLUMN].count;
  run->participates = rank < 2 * pairs;
  int before = run->participates && rank >= pairs ? rank - pairs : MPI_PROC_NULL;
  int after = rank < pairs ? rank + pairs : MPI_PROC_NULL;
  return prepare_round_trip(before, after, &c->fields[BYTES_COLUMN]);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "pairs", .title = "Round trips of several pairs at once", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 2, .timing = TIMED_BY_HARNESS,
      .check = check, .prepare = prepare, .pass = pass_round_trip, .cleanup = cleanup_round_trip,
  };
  return harness_main(argc, argv, &program);
}
