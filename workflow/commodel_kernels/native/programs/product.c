/* product.c: checks C = A B without another product, by C v = A (B v) for a vector v (Freivalds 1977), and for small
 * matrices element by element, since every rank can compute all elements of A and B.
 *
 * The rounding error of each element of either side is at most about 2 n eps (|A| |B| |v|); larger differences are errors.
 * All elements of v are at least 1/2 in size, so that no wrong element of C is masked.
 */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { SMALL = 192 }; /* rows of a matrix that is also checked element by element */

/* sum[i] += matrix * vector over a rectangle whose first element is (row, column), over the columns first..last - 1 and
 * rows low..high - 1 of the whole matrix. */
static void add_matrix_vector(double *sum, const double *matrix, const Product *p, const double *vector, size_t first, size_t last,
                      size_t low, size_t high, bool absolute)
{
  size_t side = (size_t)p->side, row = (size_t)p->rectangle.y * side, column = (size_t)p->rectangle.x * side;
  size_t rows = (size_t)p->rectangle.height * side, columns = (size_t)p->rectangle.width * side;
  for (size_t i = 0; i < rows; i++) {
    if (row + i < low || row + i >= high) continue;
    double of_row = 0;
    for (size_t j = 0; j < columns; j++) {
      if (column + j < first || column + j >= last) continue;
      double term = matrix[i * columns + j] * vector[column + j];
      of_row += absolute ? fabs(term) : term;
    }
    sum[row + i] += of_row;
  }
}

static double *sum_over_ranks(double *sum, size_t n)
{
  MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, sum, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  return sum;
}

/* A (B v), or |A| (|B| |v|). */
static double *multiply_twice(const Product *p, const double *a, const double *b, bool absolute)
{
  double *inner = allocate(p->n, sizeof *inner), *outer = allocate(p->n, sizeof *outer);
  add_matrix_vector(inner, b, p, p->vector, 0, p->n, p->first, p->last, absolute);
  sum_over_ranks(inner, p->n);
  add_matrix_vector(outer, a, p, inner, p->first, p->last, 0, p->n, absolute);
  free(inner);
  return sum_over_ranks(outer, p->n);
}

Product *open_product(const Partition *partition, int rank, int side, int first, int last, const double *a, const double *b)
{
  Product *p = allocate(1, sizeof *p);
  size_t length = (size_t)side;
  *p = (Product){.rectangle = rectangle_of(partition, rank), .side = side, .n = (size_t)partition->side * length,
                 .first = (size_t)first * length, .last = (size_t)last * length};
  p->vector = allocate(p->n, sizeof *p->vector);
  for (size_t i = 0; i < p->n; i++) {
    double number = number_at(VECTOR, i, 0);
    p->vector[i] = number < 0 ? number - 0.5 : number + 0.5;
  }
  p->wanted = multiply_twice(p, a, b, false);
  p->allowed = multiply_twice(p, a, b, true);
  for (size_t i = 0; i < p->n; i++) p->allowed[i] *= 4 * ((double)p->n + 1) * DBL_EPSILON;
  return p;
}

static void verify_elements(const Product *p, const double *c)
{
  size_t side = (size_t)p->side, row = (size_t)p->rectangle.y * side, column = (size_t)p->rectangle.x * side;
  size_t rows = (size_t)p->rectangle.height * side, columns = (size_t)p->rectangle.width * side;
  for (size_t i = row; i < row + rows; i++)
    for (size_t j = column; j < column + columns; j++) {
      double sum = 0, absolute = 0, found = c[(i - row) * columns + j - column];
      for (size_t k = p->first; k < p->last; k++) {
        double term = number_at(MATRIX_A, i, k) * number_at(MATRIX_B, k, j);
        sum += term;
        absolute += fabs(term);
      }
      if (!(fabs(found - sum) <= 2 * ((double)p->n + 1) * DBL_EPSILON * absolute))
        DIE("the product does not verify: C(%zu, %zu) is %.17g, wanted %.17g", i, j, found, sum);
    }
}

/* Only rank 0 reports an error that all ranks have. */
void verify_product(Product *p, const double *c)
{
  int rank;
  double *sum = allocate(p->n, sizeof *sum);
  MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  add_matrix_vector(sum, c, p, p->vector, 0, p->n, 0, p->n, false);
  sum_over_ranks(sum, p->n);
  for (size_t i = 0; rank == 0 && i < p->n; i++)
    if (!(fabs(sum[i] - p->wanted[i]) <= p->allowed[i]))
      DIE("the product does not verify: row %zu of C times a vector is %.17g, A times B times the vector %.17g, which may differ by %.3g",
          i, sum[i], p->wanted[i], p->allowed[i]);
  free(sum);
  if (p->n <= SMALL && !p->verified_elements) verify_elements(p, c);
  p->verified_elements = true;
}

void close_product(Product *p)
{
  free(p->vector);
  free(p->wanted);
  free(p->allowed);
  free(p);
}
