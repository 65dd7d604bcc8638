/* chain: a message is forwarded along 0 -> 1 -> ... -> height, and a reply of the same size returns along the chain.
 *
 * Seconds are the round trip on rank 0: T = 2 height (L + o_s + o_r + (s-1) G) under LogGP.
 *
 *   mpiexec -n 9 chain --cases cases.csv --out samples        cases.csv: id,height,bytes
 */
#include "roundtrip.h"

enum { HEIGHT_COLUMN, BYTES_COLUMN };
static const Column columns[] = {
    {"height", "1", "links from rank 0 to the last rank, from 1", COUNT},
    {"bytes", "B", "size of the message", BYTES},
};

static void check(const Case *c, int ranks)
{
  const Field *height = &c->fields[HEIGHT_COLUMN];
  if (height->count < 1) case_error(c, "height", height->text, "a whole number from 1");
  require_ranks(c, "height", height->count + 1, ranks);
}

static void *prepare(const Case *c, Run *run)
{
  int rank = run->rank, height = (int)c->fields[HEIGHT_COLUMN].count;
  int before = rank > 0 && rank <= height ? rank - 1 : MPI_PROC_NULL;
  int after = rank < height ? rank + 1 : MPI_PROC_NULL;
  return prepare_round_trip(before, after, &c->fields[BYTES_COLUMN]);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "chain", .title = "Round trip along a chain of ranks", .kind = "probe",
      .columns = columns, .ncolumns = 2, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .pass = pass_round_trip, .cleanup = cleanup_round_trip,
  };
  return harness_main(argc, argv, &program);
}
