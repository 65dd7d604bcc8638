/* computing.c: with what each rank computes, its processor or another device. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int works;
  char text[COMPUTING_BYTES];
} Computing;

static char *copy_text(const char *text)
{
  char *copy = allocate(strlen(text) + 1, 1);
  return strcpy(copy, text);
}

/* Appends `0-2, 5`: the ranks from `first` on that have the same text. They are marked as told. */
static void append_ranks(FILE *file, const Computing *all, int ranks, int first, bool *told)
{
  for (int r = first; r < ranks; r++) {
    if (told[r] || strcmp(all[r].text, all[first].text) != 0) continue;
    int last = r;
    while (last + 1 < ranks && strcmp(all[last + 1].text, all[first].text) == 0) last++;
    for (int k = r; k <= last; k++) told[k] = true;
    fprintf(file, last > r ? "%s%d-%d" : "%s%d", r > first ? ", " : "", r, last);
  }
}

static bool is_alone(const Computing *all, int ranks, int rank)
{
  for (int r = rank + 1; r < ranks; r++)
    if (strcmp(all[r].text, all[rank].text) == 0) return false;
  return true;
}

static char *describe_ranks(const Computing *all, int ranks)
{
  char *text = NULL;
  size_t bytes = 0;
  bool *told = allocate((size_t)ranks, sizeof *told);
  FILE *file = open_memstream(&text, &bytes);
  if (!file) DIE("out of memory");
  for (int first = 0; first < ranks; first++) {
    if (told[first]) continue;
    fprintf(file, "%s%s ", first ? "; " : "", is_alone(all, ranks, first) ? "rank" : "ranks");
    append_ranks(file, all, ranks, first, told);
    fprintf(file, ": %s", all[first].text);
  }
  if (fclose(file)) DIE("out of memory");
  free(told);
  return text;
}

char *gather_computing(bool (*computing)(char *text), int rank, int ranks, const char *hosts)
{
  Computing own = {0};
  own.works = computing(own.text);
  if (COMMODEL_SIMULATED) return rank == 0 ? copy_text(own.text) : NULL;
  Computing *all = rank == 0 ? allocate((size_t)ranks, sizeof *all) : NULL;
  MPI_TRY(MPI_Gather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, 0, MPI_COMM_WORLD));
  if (rank != 0) return NULL;
  for (int r = 0; r < ranks; r++)
    if (!all[r].works) user_error("rank %d on %s: %s", r, hosts + (size_t)r * HOST_BYTES, all[r].text);
  char *text = describe_ranks(all, ranks);
  free(all);
  return text;
}
