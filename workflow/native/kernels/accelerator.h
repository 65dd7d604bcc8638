/* accelerator.h: interface of a shared object that computes for a rank in place of its processor.
 *
 * COMMODEL_ACCELERATOR=PATH in a rank's environment names it. Matrices lie row by row, of doubles. A rank's rectangle
 * has `rows` x `columns` of them. All three are called by one thread of the rank, in this order.
 *
 *   commodel_begin   makes room for a rectangle that starts as `initial`, or of zeros where that is NULL, and is at rest
 *                    before; NULL where that is impossible.
 *   commodel_update  does one iteration; 0 when it is done, with everything requested by `out` written.
 *       gemm  C += in[0] * in[1]: a column of rows x block and a row of block x columns; out is not used.
 *       wave  one step (stencil.c) with the cells beyond the rectangle in[0..3], north, east, south and west of it;
 *             the rectangle's own edges, in the same order, go to out[0..3].
 *   commodel_end     writes the rectangle to `result`, and frees everything; 0 when it is done.
 */
#ifndef COMMODEL_ACCELERATOR_H
#define COMMODEL_ACCELERATOR_H
#include <stddef.h>

void *commodel_begin(const char *kernel, size_t rows, size_t columns, size_t block, const double *initial);
int commodel_update(void *state, const double *const in[4], double *const out[4]);
int commodel_end(void *state, double *result);

#endif
