/* pingpong: one message from rank 0 to rank 1 and one back, blocking.
 *
 * Seconds are the full round trip on rank 0, not halved: T = 2 (L + o_s + o_r + (s-1) G) under LogGP.
 *
 *   mpiexec -n 2 pingpong --cases cases.csv --out samples        cases.csv: id,bytes
 */
#include "roundtrip.h"

enum { BYTES_COLUMN };
static const Column columns[] = {{"bytes", "B", "size of the message, each way", BYTES}};

static void check(const Case *c, int ranks) { require_ranks(c, "bytes", 2, ranks); }

static void *prepare(const Case *c, Run *run)
{
  int before = run->rank == 1 ? 0 : MPI_PROC_NULL, after = run->rank == 0 ? 1 : MPI_PROC_NULL;
  return prepare_round_trip(before, after, &c->fields[BYTES_COLUMN]);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "pingpong", .title = "Round trip of one message", .kind = "probe",
      .columns = columns, .ncolumns = 1, .min_ranks = 2, .timing = TIMED_BY_ROOT,
      .check = check, .prepare = prepare, .pass = pass_round_trip, .cleanup = cleanup_round_trip,
  };
  return harness_main(argc, argv, &program);
}
