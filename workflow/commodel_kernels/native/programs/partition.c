/* partition.c: reads a partition, rank,x,y,width,height in blocks, optionally with a speed, and refuses rectangles that
 * do not tile a square exactly.
 *
 * Rectangles are sorted by x, so that only those with common columns of blocks are compared. If none overlap, and their
 * areas add up to that of the square, there is no gap.
 */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 1 << 20, FIELDS = 5, WITH_SPEED };
static const char header[] = "rank,x,y,width,height", header_with_speed[] = "rank,x,y,width,height,speed";

typedef struct {
  Rectangle rectangle;
  int rank, line;
  double speed;
} Row;

static int parse_number(const char *path, int line, const char *column, const char *text)
{
  long long value;
  if (!parse_integer(text, &value) || value < 0 || value > MAX_SIDE)
    user_error("%s:%d: column %s: found '%s', wanted a whole number from 0 to %d", path, line, column, text, MAX_SIDE);
  return (int)value;
}

static Row parse_row(const char *path, int line, char *text, int wanted)
{
  static const char *const columns[FIELDS] = {"rank", "x", "y", "width", "height"};
  char *fields[WITH_SPEED];
  int count = split_fields(text, fields, wanted), numbers[FIELDS];
  if (count != wanted) user_error("%s:%d: found %d fields, wanted %d", path, line, count, wanted);
  for (int k = 0; k < FIELDS; k++) numbers[k] = parse_number(path, line, columns[k], fields[k]);
  Row row = {{numbers[1], numbers[2], numbers[3], numbers[4]}, numbers[0], line, 0};
  if (wanted == WITH_SPEED && !(parse_real(fields[FIELDS], &row.speed) && row.speed > 0))
    user_error("%s:%d: column speed: found '%.80s', wanted a number above 0", path, line, fields[FIELDS]);
  if ((row.rectangle.width == 0) != (row.rectangle.height == 0))
    user_error("%s:%d: found %d x %d blocks, wanted both above 0, or both 0 of a rank without work", path, line,
               row.rectangle.width, row.rectangle.height);
  return row;
}

static int compare_rows(const void *a, const void *b)
{
  const Row *p = a, *q = b;
  if (p->rectangle.x != q->rectangle.x) return p->rectangle.x < q->rectangle.x ? -1 : 1;
  return (p->rectangle.y > q->rectangle.y) - (p->rectangle.y < q->rectangle.y);
}

int shared_length(int start, int length, int other, int other_length)
{
  int first = start > other ? start : other;
  int end = start + length < other + other_length ? start + length : other + other_length;
  return end > first ? end - first : 0;
}

static void check_tiling(const char *path, Partition *partition, Row *rows, int count)
{
  long long area = 0, square_area = (long long)partition->side * partition->side;
  qsort(rows, (size_t)count, sizeof *rows, compare_rows);
  partition->columns = true;
  for (int i = 0; i < count; i++) {
    Rectangle a = rows[i].rectangle;
    area += (long long)a.width * a.height;
    for (int j = i + 1; j < count && rows[j].rectangle.x < a.x + a.width; j++) {
      Rectangle b = rows[j].rectangle;
      if (!b.width) continue;
      if (shared_length(a.y, a.height, b.y, b.height))
        user_error("%s:%d: found a rectangle that overlaps that of line %d", path, rows[j].line, rows[i].line);
      if (a.x != b.x || a.width != b.width) partition->columns = false;
    }
  }
  if (area != square_area)
    user_error("%s: found rectangles of %lld blocks in all, wanted %lld: %d x %d without a gap", path, area, square_area,
               partition->side, partition->side);
}

Partition read_partition(const char *path)
{
  Partition partition = {0};
  char *text = read_text(path, "partition"), *cursor = text;
  int lines = 1, count = 0;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  char *line = next_line(&cursor);
  bool speeds = line && strcmp(line, header_with_speed) == 0;
  if (!speeds && (!line || strcmp(line, header) != 0))
    user_error("%s:1: found '%.80s', wanted %s", path, line ? line : "", header);
  Row *rows = allocate((size_t)lines, sizeof *rows);
  for (int number = 2; (line = next_line(&cursor)); number++) {
    if (!*line) continue;
    Row row = rows[count++] = parse_row(path, number, line, speeds ? WITH_SPEED : FIELDS);
    int right = row.rectangle.x + row.rectangle.width, bottom = row.rectangle.y + row.rectangle.height;
    if (row.rectangle.width && right > partition.side) partition.side = right;
    if (row.rectangle.width && bottom > partition.side) partition.side = bottom;
  }
  if (partition.side == 0) user_error("%s: found no block, wanted at least one", path);
  if (partition.side > MAX_SIDE) user_error("%s: found %d blocks in a row, wanted at most %d", path, partition.side, MAX_SIDE);
  partition.ranks = count;
  partition.of = allocate((size_t)count, sizeof *partition.of);
  if (speeds) partition.speed = allocate((size_t)count, sizeof *partition.speed);
  int *line_of = allocate((size_t)count, sizeof *line_of);
  for (int i = 0; i < count; i++) {
    int rank = rows[i].rank;
    if (rank >= count) user_error("%s:%d: found rank %d, wanted ranks 0 to %d, one per line", path, rows[i].line, rank, count - 1);
    if (line_of[rank]) user_error("%s:%d: found rank %d, which line %d has", path, rows[i].line, rank, line_of[rank]);
    line_of[rank] = rows[i].line;
    partition.of[rank] = rows[i].rectangle;
    if (speeds) partition.speed[rank] = rows[i].speed;
  }
  check_tiling(path, &partition, rows, count);
  free(line_of);
  free(rows);
  free(text);
  return partition;
}

Partition broadcast_partition(const char *path, int rank)
{
  Partition partition = {0};
  if (rank == 0) partition = read_partition(path);
  int partition_header[4] = {partition.side, partition.ranks, partition.columns, partition.speed != NULL};
  MPI_TRY(MPI_Bcast(partition_header, 4, MPI_INT, 0, MPI_COMM_WORLD));
  size_t ranks = (size_t)partition_header[1];
  if (rank != 0) {
    partition = (Partition){partition_header[0], partition_header[1], partition_header[2], allocate(ranks, sizeof(Rectangle)), NULL};
    if (partition_header[3]) partition.speed = allocate(ranks, sizeof *partition.speed);
  }
  MPI_TRY(MPI_Bcast(partition.of, partition.ranks * (int)(sizeof(Rectangle) / sizeof(int)), MPI_INT, 0, MPI_COMM_WORLD));
  if (partition.speed) MPI_TRY(MPI_Bcast(partition.speed, partition.ranks, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  return partition;
}

Rectangle rectangle_of(const Partition *partition, int rank)
{
  return rank < partition->ranks ? partition->of[rank] : (Rectangle){0};
}

double computation_seconds(const Partition *partition, int rank)
{
  Rectangle own = rectangle_of(partition, rank);
  return own.width && partition->speed ? (double)own.width * own.height / partition->speed[rank] : 0;
}

void free_partition(Partition *partition)
{
  free(partition->of);
  free(partition->speed);
}
