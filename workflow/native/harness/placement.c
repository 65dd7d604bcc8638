/* placement.c: the host of every rank, and its check against the plan. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

char *gather_hosts(int rank, int ranks)
{
  char host[HOST_BYTES] = "", name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_TRY(MPI_Get_processor_name(name, &length));
  /* Several Slurm nodes may share one kernel; the simulated ranks share one environment. */
  const char *node = COMMODEL_SIMULATED ? NULL : getenv("SLURMD_NODENAME");
  snprintf(host, sizeof host, "%s", node && *node ? node : name);
  char *hosts = rank == 0 ? allocate((size_t)ranks, HOST_BYTES) : NULL;
  MPI_TRY(MPI_Gather(host, HOST_BYTES, MPI_CHAR, hosts, HOST_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD));
  return hosts;
}

void check_rank_count(const char *path, int ranks)
{
  char *text = read_text(path, "placement file"), *cursor = text;
  int count = 0;
  while (next_line(&cursor)) count++;
  free(text);
  if (count == ranks) return;
  /* With a wrong launcher, every process is rank 0 of 1 and would measure nothing. */
  if (ranks == 1)
    user_error("each of the %d processes is rank 0 of 1: the programs' MPI does not support the launcher "
               "(another MPI's mpiexec, the wrong srun --mpi=, or a container without its environment)", count);
  user_error("%s: placement of %d ranks expected, but %d ranks are running", path, count, ranks);
}

/* Each line has the node index of a rank and, if the host is planned, a space and its name. Compares each rank with its
 * line, and with the first rank of the same node and of the same host: if all agree, nodes and hosts correspond one to
 * one. O(ranks^2) at worst, milliseconds for 1000 ranks. */
void check_placement(const char *path, const char *hosts, int ranks)
{
  char *text = read_text(path, "placement file"), *cursor = text;
  long long *nodes = allocate((size_t)ranks, sizeof *nodes);
  for (int r = 0; r < ranks; r++) {
    char *line = next_line(&cursor), *name = line ? strchr(line, ' ') : NULL;
    if (name) *name++ = '\0';
    if (!line || !parse_integer(line, &nodes[r]) || nodes[r] < 0)
      user_error("%s:%d: found '%s', wanted the node index of rank %d, a whole number from 0", path, r + 1,
                 line ? line : "nothing", r);
    const char *host = hosts + (size_t)r * HOST_BYTES;
    if (name && !same_host(name, host))
      user_error("%s:%d: rank %d should be on %s, but is on %s", path, r + 1, r, name, host);
    for (int first = 0; first < r; first++) {
      const char *other = hosts + (size_t)first * HOST_BYTES;
      bool same_host_name = strcmp(host, other) == 0;
      if (nodes[r] == nodes[first] && !same_host_name)
        user_error("%s:%d: rank %d should be on node %lld like rank %d (host %s), but is on host %s", path, r + 1, r,
                   nodes[r], first, other, host);
      if (nodes[r] != nodes[first] && same_host_name)
        user_error("%s:%d: rank %d should be on node %lld and rank %d on node %lld, but both are on host %s",
                   path, r + 1, r, nodes[r], first, nodes[first], host);
      if (same_host_name) break;
    }
  }
  free(nodes);
  free(text);
}
