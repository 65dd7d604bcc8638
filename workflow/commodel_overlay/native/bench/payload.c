/* payload.c: contents of packets. Answers are small whole numbers as doubles, so that sums in any order are exact, and
 * zeros for the remaining bytes. Other packets have a pattern of bytes. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD_ = 64 };

void fill_down(unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)((i * 31 + 7) % 251);
}

bool is_down(const unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != (unsigned char)((i * 31 + 7) % 251)) return false;
  return true;
}

void fill_data(unsigned char *bytes, size_t count, int kind)
{
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)((i * 31 + (size_t)kind) % 251);
}

bool is_data(const unsigned char *bytes, size_t count, int kind)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != (unsigned char)((i * 31 + (size_t)kind) % 251)) return false;
  return true;
}

static double value(int leaf, size_t i) { return (double)(((size_t)leaf * 31 + i * 17) % PERIOD_) - 20; }

OverlayPacket *make_answer(int leaf, size_t bytes)
{
  size_t numbers = bytes / sizeof(double), tail_bytes = bytes % sizeof(double);
  double *values = allocate(numbers, sizeof *values);
  unsigned char zeros[sizeof(double)] = {0};
  for (size_t i = 0; i < numbers; i++) values[i] = value(leaf, i);
  OverlayPacket *packet = overlay_pack(0, "%alf %auc", values, (uint32_t)numbers, zeros, (uint32_t)tail_bytes);
  free(values);
  return packet;
}

/* From the definition; it repeats every PERIOD_ numbers. */
static double expected(const char *filter, int leaves, size_t i)
{
  double sum = 0, smallest = value(0, i), largest = smallest;
  for (int leaf = 0; leaf < leaves; leaf++) {
    double own = value(leaf, i);
    sum += own;
    smallest = fmin(smallest, own);
    largest = fmax(largest, own);
  }
  if (strcmp(filter, "sum") == 0) return sum;
  if (strcmp(filter, "min") == 0) return smallest;
  if (strcmp(filter, "max") == 0) return largest;
  return sum / leaves;
}

/* Whether values are the concatenated answers of `count` leaves. */
static bool are_answers(const double *values, size_t numbers, int first, int count)
{
  for (int leaf = 0; leaf < count; leaf++)
    for (size_t i = 0; i < numbers; i++)
      if (values[(size_t)leaf * numbers + i] != value(first + leaf, i)) return false;
  return true;
}

bool is_reduced(const char *filter, OverlayPacket *packet, int leaves, size_t bytes)
{
  size_t numbers = bytes / sizeof(double), tail_bytes = bytes % sizeof(double);
  const double *values;
  const unsigned char *zeros; /* of an average doubles, whose 0 has zero bytes, too */
  uint32_t count, left;
  const char *format = strcmp(filter, "average") == 0 ? "%alf %alf" : "%alf %auc";
  if (overlay_unpack(packet, format, &values, &count, &zeros, &left) != OVERLAY_OK) return false;
  bool one = strcmp(filter, "none") == 0, all = strcmp(filter, "concat") == 0, work = strncmp(filter, "work:", 5) == 0;
  size_t copies = all ? (size_t)leaves : 1;
  if (count != numbers * copies || left != tail_bytes * copies) return false;
  for (size_t i = 0; i < left; i++)
    if (zeros[i]) return false;
  if (one || all || work) return are_answers(values, numbers, one ? overlay_source(packet) : 0, all ? leaves : 1);
  double wanted[PERIOD_];
  for (size_t i = 0; i < PERIOD_; i++) wanted[i] = expected(filter, leaves, i);
  for (size_t i = 0; i < numbers; i++)
    if (fabs(values[i] - wanted[i % PERIOD_]) > 1e-9) return false; /* an average of averages is rounded */
  return true;
}
