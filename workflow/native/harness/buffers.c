/* buffers.c: buffers of messages.
 *
 * A program sends from one buffer and receives into another, as IMB and OSU do. With one buffer, every message
 * overwrites the data of the next send, and a ping-pong in shared memory takes up to 2.4 times as long. A buffer starts
 * on its own page, so that earlier allocations do not matter, and all its pages are mapped before the first sample.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *allocate_buffer(size_t count, size_t size)
{
  long page = sysconf(_SC_PAGESIZE);
  size_t bytes = count * size;
  void *memory = NULL;
  if (page <= 0) DIE("the page size of this system is unknown");
  if ((size && bytes / size != count) || posix_memalign(&memory, (size_t)page, bytes ? bytes : 1) != 0)
    DIE("no memory for %zu items of %zu bytes", count, size);
  memset(memory, 1, bytes); /* pages that are never written may all map to one page of zeros */
  return memory;
}
