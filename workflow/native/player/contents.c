/* contents.c: blocks whose bytes encode source and destination, and vectors whose sum is known. */
#include "contents.h"

/* Byte i of the block that rank src sends to rank dst. */
static char block_byte(int src, int dst, size_t i)
{
  uint32_t z = (uint32_t)src * 0x9e3779b1u ^ (uint32_t)dst * 0x85ebca77u ^ (uint32_t)i * 0xc2b2ae3du;
  return (char)((z ^ z >> 15) * 0x2c1b3c6du >> 24);
}

/* Element i of rank r's vector is weight(r) + i % 53: small, so that a sum of doubles is exact, one of bytes modulo
 * 256. A vector missing, taken twice or out of place shows. */
static unsigned weight(int r)
{
  return (unsigned)r % 61 + 1;
}

static void put(MPI_Datatype type, char *buffer, size_t i, unsigned long value)
{
  if (type == MPI_DOUBLE)
    ((double *)(void *)buffer)[i] = (double)value;
  else
    buffer[i] = (char)(value & 0xff);
}

static bool is(MPI_Datatype type, const char *buffer, size_t i, unsigned long value)
{
  if (type == MPI_DOUBLE) return ((const double *)(const void *)buffer)[i] == (double)value;
  return (unsigned char)buffer[i] == (value & 0xff);
}

size_t elements(MPI_Datatype type, size_t bytes)
{
  return type == MPI_DOUBLE ? bytes / sizeof(double) : bytes;
}

void fill_contents(const Contents *c, char *sent, size_t bytes)
{
  size_t count = elements(c->type, bytes);
  for (size_t i = 0; i < count; i++)
    if (c->sums)
      put(c->type, sent, i, weight(c->rank) + i % 53);
    else
      sent[i] = block_byte(c->rank, c->to_each ? (int)(i / c->block) : 0, i % c->block);
}

size_t first_wrong(const Contents *c, const char *received, size_t bytes)
{
  size_t count = elements(c->type, bytes);
  unsigned long weights = 0;
  for (int r = 0; r < c->ranks; r++) weights += weight(r);
  for (size_t i = 0; i < count; i++) {
    int src = c->from_all ? (int)(i / c->block) : 0;
    bool right = c->sums ? is(c->type, received, i, weights + (unsigned long)c->ranks * ((c->first + i) % 53))
                         : received[i] == block_byte(src, c->to_each ? c->rank : 0, i % c->block);
    if (!right) return i;
  }
  return count;
}
