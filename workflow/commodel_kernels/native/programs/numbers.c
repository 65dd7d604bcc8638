/* numbers.c: matrices whose elements any rank can compute, so that it can check those of other ranks. */
#include "kernels.h"

#include <math.h>

double number_at(Numbers numbers, uint64_t row, uint64_t column)
{
  uint64_t z = ((uint64_t)numbers + 1) * 0x9e3779b97f4a7c15u + row * 0xd1b54a32d192ed03u + column * 0x8cb92ba72f3d8dd7u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)(z >> 11) * 0x1p-53 - 0.5;
}

double *make_numbers_of(Numbers numbers, Rectangle blocks, int side)
{
  size_t length = (size_t)side, rows = (size_t)blocks.height * length, columns = (size_t)blocks.width * length;
  double *matrix = allocate(rows * columns, sizeof *matrix);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++)
      matrix[i * columns + j] = number_at(numbers, (size_t)blocks.y * length + i, (size_t)blocks.x * length + j);
  return matrix;
}

int block_side(long long bytes)
{
  int side = (int)(sqrt((double)bytes / sizeof(double)) + 0.5);
  return (long long)side * side * (long long)sizeof(double) == bytes ? side : 0;
}
