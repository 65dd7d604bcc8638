/* task.c: computation on a rectangle, by the rank's processor, GPU or accelerator. */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct Task {
  const Device *device;
  GpuTask *on_gpu;           /* NULL: no GPU computes */
  void *accelerator;         /* the state of an accelerator; NULL: none computes */
  bool wave, loaded;         /* loaded: the GPU has the input of the next update */
  size_t rows, columns, block; /* in doubles; block: side of a block of gemm */
  size_t stride;             /* of wave: includes the adjacent cells */
  double *cells, *old;       /* old: of wave, the cells one step earlier */
};

static double *first_cell(double *cells, size_t stride) { return cells + stride + 1; }

static void copy_rows(double *to, size_t to_stride, const double *from, size_t from_stride, size_t rows, size_t columns)
{
  for (size_t i = 0; i < rows; i++) memcpy(to + i * to_stride, from + i * from_stride, columns * sizeof *to);
}

/* The case is lost, not the run: a GPU that is full has memory for smaller ones. */
static _Noreturn void gpu_error(const Device *device) { DIE("%s", device->gpu->problem); }

Task *begin_task(const Device *device, const char *kernel, size_t rows, size_t columns, size_t block,
                 const double *initial)
{
  Task *t = allocate(1, sizeof *t);
  *t = (Task){.device = device, .wave = strcmp(kernel, "wave") == 0, .rows = rows, .columns = columns, .block = block};
  if (rows == 0) return t;
  if (device->gpu) {
    t->on_gpu = begin_gpu_task(device->gpu, kernel, rows, columns, block, initial);
    if (!t->on_gpu) gpu_error(device);
    return t;
  }
  if (device->library) {
    t->accelerator = device->begin(kernel, rows, columns, block, initial);
    if (!t->accelerator) DIE("the accelerator cannot allocate %zu x %zu doubles of %s", rows, columns, kernel);
    return t;
  }
  if (!t->wave) {
    t->cells = (double *)(void *)allocate_buffer(rows * columns, sizeof *t->cells);
    for (size_t i = 0; i < rows * columns; i++) t->cells[i] = initial ? initial[i] : 0;
    return t;
  }
  t->stride = columns + 2;
  t->cells = allocate((rows + 2) * t->stride, sizeof *t->cells);
  t->old = allocate((rows + 2) * t->stride, sizeof *t->old);
  if (!initial) return t;
  copy_rows(first_cell(t->cells, t->stride), t->stride, initial, columns, rows, columns);
  copy_rows(first_cell(t->old, t->stride), t->stride, initial, columns, rows, columns); /* at rest */
  return t;
}

static void step_wave(Task *t, const double *const in[4], double *const out[4])
{
  double *first = first_cell(t->cells, t->stride), *next = first_cell(t->old, t->stride);
  memcpy(first - t->stride, in[NORTH], t->columns * sizeof *first);
  memcpy(first + t->rows * t->stride, in[SOUTH], t->columns * sizeof *first);
  for (size_t i = 0; i < t->rows; i++) {
    first[i * t->stride - 1] = in[WEST][i];
    first[i * t->stride + t->columns] = in[EAST][i];
  }
  wave_step(next, first, t->rows, t->columns, t->stride, t->device->threads);
  copy_edges(next, t->rows, t->columns, t->stride, out);
  double *current = t->old;
  t->old = t->cells;
  t->cells = current;
}

bool computes_apart(const Task *t) { return t->on_gpu; }

bool is_loaded(const Task *t) { return t->loaded; }

void load_task(Task *t, const double *const in[4])
{
  if (load_gpu_input(t->on_gpu, in) < 0) gpu_error(t->device);
  t->loaded = true;
}

void start_task(Task *t)
{
  if (t->device->gpu->start(t->on_gpu) < 0) gpu_error(t->device);
  t->loaded = false;
}

bool task_is_finished(Task *t, double *const out[4])
{
  int code = t->device->gpu->finished(t->on_gpu, false, out);
  if (code < 0) gpu_error(t->device);
  return code;
}

void update_task(Task *t, const double *const in[4], double *const out[4])
{
  if (t->rows == 0) return;
  if (t->on_gpu) {
    if (!t->loaded) load_task(t, in);
    start_task(t);
    if (t->device->gpu->finished(t->on_gpu, true, out) < 0) gpu_error(t->device);
  } else if (t->accelerator) {
    int code = t->device->update(t->accelerator, in, out);
    if (code) DIE("the accelerator failed with code %d", code);
  } else if (t->wave)
    step_wave(t, in, out);
  else
    multiply_add(t->device, t->rows, t->columns, t->block, in[0], in[1], t->cells);
}

static const double *read_gpu_result(Task *t)
{
  t->cells = allocate(t->rows * t->columns, sizeof *t->cells);
  int code = t->device->gpu->end(t->on_gpu, t->cells);
  t->on_gpu = NULL;
  if (code < 0) gpu_error(t->device);
  return t->cells;
}

const double *read_result(Task *t)
{
  if (t->on_gpu) return read_gpu_result(t);
  if (t->accelerator) {
    t->cells = allocate(t->rows * t->columns, sizeof *t->cells);
    int code = t->device->end(t->accelerator, t->cells);
    t->accelerator = NULL;
    if (code) DIE("the accelerator ended with code %d", code);
    return t->cells;
  }
  if (!t->wave || t->rows == 0) return t->cells;
  copy_rows(t->old, t->columns, first_cell(t->cells, t->stride), t->stride, t->rows, t->columns);
  return t->old;
}

void end_task(Task *t)
{
  if (t->on_gpu || t->accelerator) read_result(t);
  free(t->cells);
  free(t->old);
  free(t);
}

bool same_cell(const Device *device, double cell, double wanted, int steps)
{
  if (device->gpu || device->library) return fabs(cell - wanted) <= 64 * steps * DBL_EPSILON;
  return memcmp(&cell, &wanted, sizeof cell) == 0;
}
