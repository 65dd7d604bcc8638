/* speed: measures the speed of one kind of process at a kernel while all processes of its node compute.
 *
 * Processes of a node share its memory, so every rank repeats the computation for at least as long as the slowest one
 * needs for one execution, whatever its kind (device.c: threads, accelerator). One sample is the mean time of an execution
 * on the watched rank. An execution is one iteration of the kernel on a rectangle:
 *
 *   gemm  C += a b, C of height x width blocks of `bytes`, b x b doubles, a one column of blocks and b one row
 *   wave  one step of the wave equation on height x width cells of 8 bytes
 *
 * The speed is width x height divided by the seconds. The first execution is verified on every rank.
 *
 *   mpiexec -n 2 speed --cases cases.csv --out samples      cases.csv: id,kernel,width,height,bytes,watched
 */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_COLUMN, WIDTH_COLUMN, HEIGHT_COLUMN, BYTES_COLUMN, WATCHED_COLUMN, MAX_SIDE = 1 << 20 };
static const Column columns[] = {
    {"kernel", "", "gemm or wave", WORD},
    {"width", "", "blocks or cells", COUNT},
    {"height", "", "blocks or cells", COUNT},
    {"bytes", "B", "of a block, or 8 of a cell", BYTES},
    {"watched", "", "the rank whose time is the sample", COUNT},
};
static const double min_span = 1e-3, alignment_lead = 1e-3; /* seconds */

typedef struct {
  Run *run;
  bool wave;
  int watched;
  size_t rows, width, side; /* in doubles */
  double span;              /* seconds that all ranks compute for */
  double *in[4], *out[4];   /* of gemm the column and the row; of wave the adjacent cells and the edges */
  Device device;
  Task *task;
} State;

static void check(const Case *c, int ranks)
{
  const Field *fields = c->fields, *kernel = &fields[KERNEL_COLUMN];
  bool wave = strcmp(kernel->text, "wave") == 0;
  if (!wave && strcmp(kernel->text, "gemm") != 0) case_error(c, "kernel", kernel->text, columns[KERNEL_COLUMN].meaning);
  if (COMMODEL_SIMULATED) case_error(c, "kernel", kernel->text, "a real machine: in simulated time nothing is computed");
  for (int k = WIDTH_COLUMN; k <= HEIGHT_COLUMN; k++)
    if (fields[k].count < 1 || fields[k].count > MAX_SIDE)
      case_error(c, columns[k].name, fields[k].text, "a whole number from 1 to 1048576");
  long long bytes = fields[BYTES_COLUMN].count;
  if (wave && bytes != sizeof(double)) case_error(c, "bytes", fields[BYTES_COLUMN].text, "8: a cell is a double");
  if (!block_side(bytes)) case_error(c, "bytes", fields[BYTES_COLUMN].text, "8 b^2 for a block of b x b doubles");
  require_ranks(c, "watched", fields[WATCHED_COLUMN].count + 1, ranks);
  Device device = open_device(); /* only rank 0 reports a wrong environment */
  close_device(&device);
}

static double *make_matrix(size_t rows, size_t width, Numbers numbers)
{
  double *matrix = allocate(rows * width, sizeof *matrix);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < width; j++) matrix[i * width + j] = number_at(numbers, i, j);
  return matrix;
}

static void begin(State *s)
{
  double *start = s->wave ? make_matrix(s->rows, s->width, WAVE) : NULL;
  s->task = begin_task(&s->device, s->wave ? "wave" : "gemm", s->rows, s->width, s->side, start);
  free(start);
}

static void execute(State *s) { update_task(s->task, (const double *const *)s->in, s->out); }

/* Verifies elements of gemm: the last row and column of the result, where tiles are incomplete. */
static void verify_gemm(const State *s, const double *result)
{
  const double *a = s->in[0], *b = s->in[1];
  for (size_t n = 0; n < s->rows + s->width; n++) {
    size_t i = n < s->rows ? n : s->rows - 1, j = n < s->rows ? s->width - 1 : n - s->rows;
    double sum = 0, magnitudes = 0;
    for (size_t p = 0; p < s->side; p++) {
      double term = a[i * s->side + p] * b[p * s->width + j];
      sum += term;
      magnitudes += fabs(term);
    }
    if (!(fabs(result[i * s->width + j] - sum) <= 2 * (double)s->side * DBL_EPSILON * magnitudes))
      DIE("rank %d: the product does not verify: C(%zu, %zu) is %.17g, wanted %.17g", s->run->rank, i, j,
          result[i * s->width + j], sum);
  }
}

/* Verifies all cells of wave, by a step of one thread on this processor. */
static void verify_wave(const State *s, const double *result)
{
  size_t stride = s->width + 2, capacity = (s->rows + 2) * stride;
  double *old = allocate(capacity, sizeof *old), *current = allocate(capacity, sizeof *current);
  for (size_t i = 0; i < s->rows; i++)
    for (size_t j = 0; j < s->width; j++) current[(i + 1) * stride + j + 1] = number_at(WAVE, i, j);
  memcpy(old, current, capacity * sizeof *old);
  wave_step(old + stride + 1, current + stride + 1, s->rows, s->width, stride, 1);
  for (size_t i = 0; i < s->rows; i++)
    for (size_t j = 0; j < s->width; j++)
      if (!same_cell(&s->device, result[i * s->width + j], old[(i + 1) * stride + j + 1], 1))
        DIE("rank %d: the wave does not verify: the cell (%zu, %zu) is %.17g, wanted %.17g", s->run->rank, j, i,
            result[i * s->width + j], old[(i + 1) * stride + j + 1]);
  free(old);
  free(current);
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  const Field *fields = c->fields;
  s->run = run;
  s->wave = strcmp(fields[KERNEL_COLUMN].text, "wave") == 0;
  s->watched = (int)fields[WATCHED_COLUMN].count;
  s->side = (size_t)block_side(fields[BYTES_COLUMN].count);
  s->rows = (size_t)fields[HEIGHT_COLUMN].count * s->side;
  s->width = (size_t)fields[WIDTH_COLUMN].count * s->side;
  s->device = open_device();
  for (int k = 0; k < 4; k++) {
    size_t length = k == NORTH || k == SOUTH ? s->width : s->rows;
    s->in[k] = s->wave ? allocate(length, sizeof(double)) : NULL;
    s->out[k] = s->wave ? allocate(length, sizeof(double)) : NULL;
  }
  if (!s->wave) {
    s->in[0] = make_matrix(s->rows, s->side, MATRIX_A);
    s->in[1] = make_matrix(s->side, s->width, MATRIX_B);
  }
  begin(s);
  execute(s);
  (s->wave ? verify_wave : verify_gemm)(s, read_result(s->task));
  end_task(s->task);
  begin(s);
  return s;
}

static double execute_for(State *s, double span)
{
  int executions = 0;
  double start = clock_now(), elapsed;
  do {
    execute(s);
    executions++;
    elapsed = clock_now() - start;
  } while (elapsed < span);
  return elapsed / executions;
}

static void pass(void *state)
{
  State *s = state;
  align_pass(s->run->alignment, alignment_lead);
  double seconds = execute_for(s, s->span), watched = s->run->rank == s->watched ? seconds : 0;
  MPI_TRY(MPI_Reduce(&watched, &s->run->seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
}

/* The span of all ranks is the time of the slowest while all ranks compute, after a warm-up. */
static void first_pass(void *state)
{
  State *s = state;
  execute(s);
  MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  double own = execute_for(s, min_span);
  MPI_TRY(MPI_Allreduce(&own, &s->span, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  if (s->span < min_span) s->span = min_span;
}

static void cleanup(void *state)
{
  State *s = state;
  end_task(s->task);
  close_device(&s->device);
  for (int k = 0; k < 4; k++) {
    free(s->in[k]);
    free(s->out[k]);
  }
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "speed", .title = "Speed of a kernel on one kind of process", .columns = columns, .ncolumns = 5,
      .check = check, .prepare = prepare, .first_pass = first_pass, .pass = pass, .cleanup = cleanup,
  };
  return kernel_main(argc, argv, program);
}
