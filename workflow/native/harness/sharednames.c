/* sharednames.c: unlinks the shared memory files of a node's ranks.
 *
 * MPICH 5 removes its file in /dev/shm in MPI_Finalize, so ranks that are killed leave it there. A file's name is needed
 * only until all ranks have mapped it. A file that a rank has mapped belongs to its job. */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "/dev/shm/mpich_shm_";

void unlink_shared_memory(void)
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
