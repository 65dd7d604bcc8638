/* sharednames.c: unlinks the names of the shared memory of a node's ranks.
 *
 * MPICH 5 keeps its file in /dev/shm until the last rank leaves MPI_Finalize, so ranks that are killed leave it there
 * for ever. A name is needed only until all have the memory; what a rank has in memory under it is its job's own. */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "/dev/shm/mpich_shm_";

void drop_shared_names(void)
{
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) return; /* not Linux */
  char line[4096];
  while (fgets(line, sizeof line, maps)) {
    char *path = strstr(line, prefix);
    if (!path) continue;
    path[strcspn(path, "\n")] = '\0'; /* "NAME (deleted)" of an unlinked file does not exist */
    if (unlink(path) != 0 && errno != ENOENT) break;
  }
  fclose(maps);
}
