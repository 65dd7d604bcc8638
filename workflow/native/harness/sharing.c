/* sharing.c: which CPUs of a node each of its processes gets. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

bool parse_share(char *line, Share *share)
{
  enum { MOST = 65536 };
  char *second = line ? strchr(line, ' ') : NULL;
  if (!second) return false;
  *second++ = '\0';
  char *third = strchr(second, ' ');
  if (third) *third++ = '\0';
  long long gpu = -1;
  if (third && (strncmp(third, "gpu:", 4) != 0 || !parse_integer(third + 4, &gpu) || gpu < 0 || gpu > MOST)) return false;
  *share = (Share){.gpu = (int)gpu};
  return parse_integer(line, &share->node) && share->node >= 0 && parse_integer(second, &share->count) &&
         share->count >= (third ? 0 : 1) && share->count <= MOST;
}

bool *read_near_cpus(const char *devices, const char *address, const int *cpus, int count)
{
  char path[512], text[4096] = "", *cursor = text;
  snprintf(path, sizeof path, "%s/%s/local_cpulist", devices, address);
  FILE *file = fopen(path, "r");
  if (!file) return NULL;
  if (!fgets(text, sizeof text, file)) text[0] = '\0';
  fclose(file);
  bool *near = allocate((size_t)count, sizeof *near);
  while (*cursor >= '0' && *cursor <= '9') { /* 0-5,12 */
    long first = strtol(cursor, &cursor, 10), last = first;
    if (*cursor == '-') last = strtol(cursor + 1, &cursor, 10);
    if (*cursor == ',') cursor++;
    for (int i = 0; i < count; i++) near[i] |= cpus[i] >= first && cpus[i] <= last;
  }
  return near;
}

/* How many CPUs without an owner there are: all, or those that are near. */
static int count_free(const int *owners, int cpus, const bool *near)
{
  int count = 0;
  for (int i = 0; i < cpus; i++) count += owners[i] < 0 && (!near || near[i]);
  return count;
}

static void take(int *owners, int cpus, const bool *near, int owner, long long count)
{
  for (int i = 0; i < cpus && count > 0; i++) {
    if (owners[i] >= 0 || (near && !near[i])) continue;
    owners[i] = owner;
    count--;
  }
}

static bool distinguishes(const bool *near, int cpus)
{
  int count = 0;
  for (int i = 0; near && i < cpus; i++) count += near[i];
  return count > 0 && count < cpus;
}

/* Processes with a GPU come first if CPUs differ in their distance to it. At last, one CPU that nobody has is given to each
 * process without cores of its own. */
void share_cpus(const Share *shares, int processes, int *owners, int cpus)
{
  bool *has_taken = allocate((size_t)processes, sizeof *has_taken);
  for (int i = 0; i < cpus; i++) owners[i] = -1;
  for (int p = 0; p < processes; p++) {
    if (!distinguishes(shares[p].near, cpus) || count_free(owners, cpus, shares[p].near) < shares[p].count) continue;
    take(owners, cpus, shares[p].near, p, shares[p].count);
    has_taken[p] = true;
  }
  for (int p = 0; p < processes; p++)
    if (!has_taken[p]) take(owners, cpus, NULL, p, shares[p].count);
  for (int p = 0; p < processes; p++)
    if (shares[p].count == 0) take(owners, cpus, count_free(owners, cpus, shares[p].near) ? shares[p].near : NULL, p, 1);
  free(has_taken);
}
