/* parsers.c: the native readers of text, fed what nobody checked before: `parsers cases FILE`, and so schedule and
 * partition. Ends with 0 (read) or 2 (refused in one line); sanitizers end it otherwise. */
#include "kernels.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

static const Column columns[] = {
    {"n", "1", "how many", COUNT}, {"bytes", "B", "size", BYTES}, {"delay", "s", "a delay", NUMBER}, {"how", "", "a word", WORD}};
enum { COLUMNS = sizeof columns / sizeof *columns };

int main(int argc, char **argv)
{
  if (argc != 3) return 64;
  if (strcmp(argv[1], "cases") == 0) {
    CaseFile cases = parse_cases(argv[2], read_text(argv[2], "case file"), columns, COLUMNS, true);
    int *order = allocate((size_t)cases.count, sizeof *order);
    shuffle(order, cases.count, 7);
    free(order);
    free_cases(&cases);
    return 0;
  }
  if (strcmp(argv[1], "partition") == 0) {
    Partition partition = read_partition(argv[2]);
    free_partition(&partition);
    return 0;
  }
  Schedule schedule = read_schedule(argv[2]);
  free_schedule(&schedule);
  return 0;
}
