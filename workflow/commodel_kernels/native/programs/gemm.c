/* gemm.c: C += A B for contiguous row-major matrices: by the dgemm of a library, or by a blocked loop.
 *
 * The loop keeps a tile of 4 x 4 of C in registers while it reads a packed strip of B from the first-level cache.
 */
#include "kernels.h"

enum { TILE = 4, STRIP = 256 };

/* A whole tile: c += a b, b packed to TILE columns. */
static void add_tile(size_t k, const double *restrict a, size_t lda, const double *restrict b, double *restrict c,
                     size_t ldc)
{
  double sum[TILE][TILE] = {{0}};
  for (size_t p = 0; p < k; p++)
    for (int r = 0; r < TILE; r++)
      for (int s = 0; s < TILE; s++) sum[r][s] += a[(size_t)r * lda + p] * b[p * TILE + (size_t)s];
  for (int r = 0; r < TILE; r++)
    for (int s = 0; s < TILE; s++) c[(size_t)r * ldc + (size_t)s] += sum[r][s];
}

/* The remainder at the right and below, of at most TILE rows and columns. */
static void add_remainder(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b, double *c, size_t ldc)
{
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++)
      for (size_t p = 0; p < k; p++) c[i * ldc + j] += a[i * lda + p] * b[p * TILE + j];
}

static void add_strip(size_t m, size_t n, size_t k, const double *a, size_t lda, const double *b, size_t ldb, double *c,
                      size_t ldc)
{
  double packed[STRIP * TILE];
  for (size_t p = 0; p < k; p++)
    for (size_t j = 0; j < TILE; j++) packed[p * TILE + j] = j < n ? b[p * ldb + j] : 0;
  for (size_t i = 0; i < m; i += TILE)
    if (n == TILE && i + TILE <= m)
      add_tile(k, a + i * lda, lda, packed, c + i * ldc, ldc);
    else
      add_remainder(m - i < TILE ? m - i : TILE, n, k, a + i * lda, lda, packed, c + i * ldc, ldc);
}

static void add_product(size_t m, size_t n, size_t k, const double *a, const double *b, double *c, int threads)
{
  (void)threads;
  for (size_t p = 0; p < k; p += STRIP) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
#endif
    for (size_t j = 0; j < n; j += TILE)
      add_strip(m, n - j < TILE ? n - j : TILE, k - p < STRIP ? k - p : STRIP, a + p, k, b + p * n + j, n, c + j, n);
  }
}

/* To Fortran, whose matrices are column-major, the matrices are transposed: C' += B' A'. Its integers may have 4 or 8
 * bytes: on little-endian machines both read the right value. */
void multiply_add(const Device *device, size_t m, size_t n, size_t k, const double *a, const double *b, double *c)
{
  if (!device->dgemm) {
    add_product(m, n, k, a, b, c, device->threads);
    return;
  }
  const int64_t rows = (int64_t)m, columns = (int64_t)n, depth = (int64_t)k;
  const double one = 1;
  device->dgemm("N", "N", &columns, &rows, &depth, &one, b, &columns, a, &depth, &one, c, &columns, 1, 1);
}
