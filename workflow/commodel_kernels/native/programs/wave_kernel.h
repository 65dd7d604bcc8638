/* wave_kernel.h: one step of the wave equation (stencil.c), as the source text of a GPU's kernel.
 *
 * It is OpenCL C and CUDA C++, by the macros KERNEL, GLOBAL, ROW and COLUMN that its compiler is given. The adjacent cells
 * `in` and the rectangle's own edges `out` are north, south, west and east, one behind the other. It adds in the order of
 * stencil.c, so that without fused operations results are equal to the last bit.
 */
#ifndef COMMODEL_WAVE_KERNEL_H
#define COMMODEL_WAVE_KERNEL_H

static const char wave_source[] =
    "KERNEL void wave_step(GLOBAL double *old, GLOBAL const double *current, GLOBAL const double *in,\n"
    "                      GLOBAL double *out, const unsigned long rows, const unsigned long columns)\n"
    "{\n"
    "  const unsigned long i = ROW, j = COLUMN;\n"
    "  if (i >= rows || j >= columns) return;\n"
    "  const unsigned long at = i * columns + j, west = 2 * columns + i, east = west + rows;\n"
    "  const double above = i > 0 ? current[at - columns] : in[j];\n"
    "  const double below = i + 1 < rows ? current[at + columns] : in[columns + j];\n"
    "  const double left = j > 0 ? current[at - 1] : in[west];\n"
    "  const double right = j + 1 < columns ? current[at + 1] : in[east];\n"
    "  const double cell = current[at] - old[at] + 0.25 * above + 0.25 * below + 0.25 * left + 0.25 * right;\n"
    "  old[at] = cell;\n"
    "  if (i == 0) out[j] = cell;\n"
    "  if (i + 1 == rows) out[columns + j] = cell;\n"
    "  if (j == 0) out[west] = cell;\n"
    "  if (j + 1 == columns) out[east] = cell;\n"
    "}\n";

#endif
