/* contents.c: blocks whose bytes encode source and destination, and vectors with an exact sum. */
#include "contents.h"

/* Byte i of the block that rank src sends to rank dst. */
static char block_byte(int src, int dst, size_t i)
{
  uint32_t z = (uint32_t)src * 0x9e3779b1u ^ (uint32_t)dst * 0x85ebca77u ^ (uint32_t)i * 0xc2b2ae3du;
  return (char)((z ^ z >> 15) * 0x2c1b3c6du >> 24);
}

/* Element i of rank r's vector is weight(r) + i % 53: small, so that a sum of doubles is exact, and a sum of bytes modulo
 * 256 is. Missing, repeated and misplaced vectors change the sum. */
static unsigned weight(int r)
{
  return (unsigned)r % 61 + 1;
}

static void set_element(MPI_Datatype type, char *buffer, size_t i, unsigned long value)
{
  if (type == MPI_DOUBLE)
    ((double *)(void *)buffer)[i] = (double)value;
  else
    buffer[i] = (char)(value & 0xff);
}

static bool equals(MPI_Datatype type, const char *buffer, size_t i, unsigned long value)
{
  if (type == MPI_DOUBLE) return ((const double *)(const void *)buffer)[i] == (double)value;
  return (unsigned char)buffer[i] == (value & 0xff);
}

size_t count_elements(MPI_Datatype type, size_t bytes)
{
  return type == MPI_DOUBLE ? bytes / sizeof(double) : bytes;
}

void fill_contents(const Contents *c, char *sent, size_t bytes)
{
  size_t count = count_elements(c->type, bytes);
  for (size_t i = 0; i < count; i++)
    if (c->sums)
      set_element(c->type, sent, i, weight(c->rank) + i % 53);
    else
      sent[i] = block_byte(c->rank, c->to_each ? (int)(i / c->block) : 0, i % c->block);
}

size_t find_first_error(const Contents *c, const char *received, size_t bytes)
{
  size_t count = count_elements(c->type, bytes);
  unsigned long weights = 0;
  for (int r = 0; r < c->ranks; r++) weights += weight(r);
  for (size_t i = 0; i < count; i++) {
    int src = c->from_all ? (int)(i / c->block) : 0;
    bool right = c->sums ? equals(c->type, received, i, weights + (unsigned long)c->ranks * ((c->first + i) % 53))
                         : received[i] == block_byte(src, c->to_each ? c->rank : 0, i % c->block);
    if (!right) return i;
  }
  return count;
}
