/* accelerator.h: interface of a shared object that computes for a rank instead of its processor.
 *
 * COMMODEL_ACCELERATOR=PATH in a rank's environment names it; COMMODEL_DRIVES there is the number of the rank's GPU on its
 * node, from 0. Matrices are stored row by row, in doubles. A rank's
 * rectangle has `rows` x `columns` of them. One thread of the rank calls the three functions in this order.
 *
 *   commodel_begin   allocates a rectangle with the values `initial`, or zeros if that is NULL; a wave starts at rest.
 *                    Returns NULL on failure.
 *   commodel_update  does one iteration, and writes `out`. Returns 0 on success.
 *       gemm  C += in[0] * in[1]: a column of rows x block and a row of block x columns; out is not used.
 *       wave  one step (stencil.c) with the adjacent cells in[0..3], north, east, south and west of the rectangle;
 *             the rectangle's own edges are written to out[0..3], in the same order.
 *   commodel_end     writes the rectangle to `result`, and frees everything. Returns 0 on success.
 */
#ifndef COMMODEL_ACCELERATOR_H
#define COMMODEL_ACCELERATOR_H
#include <stddef.h>

void *commodel_begin(const char *kernel, size_t rows, size_t columns, size_t block, const double *initial);
int commodel_update(void *state, const double *const in[4], double *const out[4]);
int commodel_end(void *state, double *result);

#endif
