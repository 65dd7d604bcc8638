/* stencil.c: one step of the wave equation on a rectangle (Rico-Gallego et al. 2017, equation 12).
 *
 * New = 2 (1 - 2 C^2) Cur - Old + C^2 (the four neighbours). New overwrites Old, which only its own cell reads.
 * C = 1/2 is stable, since C^2 <= 1/2 on a plane, and all factors are powers of two. All ranks add in the same order, so
 * that results are equal to the last bit.
 */
#include "kernels.h"

static const double c_squared = 0.25;

static void step_row(double *restrict old, const double *restrict above, const double *restrict here,
                     const double *restrict below, size_t columns)
{
  for (size_t j = 0; j < columns; j++)
    old[j] = 2 * (1 - 2 * c_squared) * here[j] - old[j] + c_squared * above[j] + c_squared * below[j] +
             c_squared * here[j - 1] + c_squared * here[j + 1];
}

void wave_step(double *old, const double *current, size_t rows, size_t columns, size_t stride, int threads)
{
  (void)threads; /* one thread without OpenMP */
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
#endif
  for (size_t i = 0; i < rows; i++) {
    const double *here = current + i * stride;
    step_row(old + i * stride, here - stride, here, here + stride, columns);
  }
}

void copy_edges(const double *first, size_t rows, size_t columns, size_t stride, double *const out[4])
{
  for (size_t j = 0; j < columns; j++) {
    out[NORTH][j] = first[j];
    out[SOUTH][j] = first[(rows - 1) * stride + j];
  }
  for (size_t i = 0; i < rows; i++) {
    out[WEST][i] = first[i * stride];
    out[EAST][i] = first[i * stride + columns - 1];
  }
}
