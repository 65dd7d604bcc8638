/* parsers.c: give a file to a native reader: `parsers cases FILE`, `parsers schedule FILE` or `parsers partition FILE`. Exit
 * code: 0 (read) or 2 (refused in one line); sanitizers end it with another code. */
#include "kernels.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

static const Column columns[] = {
    {"n", "1", "a number of messages", COUNT}, {"bytes", "B", "size", BYTES}, {"delay", "s", "a delay", NUMBER}, {"how", "", "a word", WORD}};
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
