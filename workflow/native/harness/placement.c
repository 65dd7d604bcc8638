/* placement.c: which host every rank runs on, and whether that is what was planned. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

char *gather_hosts(int rank, int ranks)
{
  char host[HOST_ROOM] = "", name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_TRY(MPI_Get_processor_name(name, &length));
  /* Several Slurm nodes may share one kernel; the simulated ranks share one environment. */
  const char *node = COMMODEL_SIMULATED ? NULL : getenv("SLURMD_NODENAME");
  snprintf(host, sizeof host, "%s", node && *node ? node : name);
  char *hosts = rank == 0 ? allocate((size_t)ranks, HOST_ROOM) : NULL;
  MPI_TRY(MPI_Gather(host, HOST_ROOM, MPI_CHAR, hosts, HOST_ROOM, MPI_CHAR, 0, MPI_COMM_WORLD));
  return hosts;
}

static long long *read_nodes(const char *path, int ranks)
{
  char *text = read_text(path, "placement file"), *cursor = text, *line;
  long long *nodes = allocate((size_t)ranks, sizeof *nodes);
  int count = 0;
  for (int number = 1; (line = next_line(&cursor)); number++) {
    long long node;
    if (!parse_integer(line, &node) || node < 0)
      user_error("%s:%d: found '%s', wanted the node index of rank %d, a whole number from 0", path, number, line,
                 number - 1);
    if (count < ranks) nodes[count] = node;
    count++;
  }
  free(text);
  if (count != ranks) user_error("%s: placement of %d ranks expected, but %d ranks are running", path, count, ranks);
  return nodes;
}

/* Compares each rank with the first rank of its node and with the first rank of its host: with both agreeing for all
 * ranks, nodes and hosts are in one-to-one correspondence. O(ranks^2) at worst, milliseconds for 1000 ranks. */
void check_placement(const char *path, const char *hosts, int ranks)
{
  long long *nodes = read_nodes(path, ranks);
  for (int r = 1; r < ranks; r++) {
    const char *host = hosts + (size_t)r * HOST_ROOM;
    for (int first = 0; first < r; first++) {
      const char *other = hosts + (size_t)first * HOST_ROOM;
      bool together = strcmp(host, other) == 0;
      if (nodes[r] == nodes[first] && !together)
        user_error("%s:%d: rank %d should be on node %lld like rank %d (host %s), but is on host %s", path, r + 1, r,
                   nodes[r], first, other, host);
      if (nodes[r] != nodes[first] && together)
        user_error("%s:%d: rank %d should be on node %lld, apart from rank %d on node %lld, but both are on host %s",
                   path, r + 1, r, nodes[r], first, nodes[first], host);
      if (together) break;
    }
  }
  free(nodes);
}
