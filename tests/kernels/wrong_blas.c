/* wrong_blas.c: a dgemm that leaves the last element of C as it was. */
#include <stdint.h>

void dgemm_(const char *ta, const char *tb, const int32_t *m, const int32_t *n, const int32_t *k, const double *alpha,
            const double *a, const int32_t *lda, const double *b, const int32_t *ldb, const double *beta, double *c,
            const int32_t *ldc)
{
  (void)ta, (void)tb, (void)beta;
  for (long j = 0; j < *n; j++)
    for (long i = 0; i < *m; i++)
      for (long p = 0; p < *k && (i + 1 < *m || j + 1 < *n); p++)
        c[j * *ldc + i] += *alpha * a[p * *lda + i] * b[j * *ldb + p];
}
