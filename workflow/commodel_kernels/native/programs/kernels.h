/* kernels.h: common code of the kernels' programs. */
#ifndef COMMODEL_KERNELS_H
#define COMMODEL_KERNELS_H

#include "accelerator.h"
#include "gpu.h"
#include "harness.h"

/* ---- partition.c: the rectangle of blocks of each rank, x to the right, y downwards ---- */
typedef struct {
  int x, y, width, height; /* 0 x 0: the rank has no work */
} Rectangle;
typedef struct {
  int side, ranks;
  bool columns; /* rectangles with common columns of blocks have the same x and width */
  Rectangle *of; /* of every rank */
  double *speed; /* blocks per second of each rank; NULL: not in the file */
} Partition;
Partition read_partition(const char *path); /* ends with user_error unless they tile side x side exactly */
Partition broadcast_partition(const char *path, int rank); /* collective; further ranks have no rectangle */
Rectangle rectangle_of(const Partition *partition, int rank);
double computation_seconds(const Partition *partition, int rank); /* of the computation of its rectangle; 0: unknown */
void free_partition(Partition *partition);
int shared_length(int start, int length, int other, int other_length); /* of two intervals */

/* ---- device.c: the processor, GPU or accelerator of this rank ---- */
typedef void Dgemm(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const double *,
                   const double *, const int64_t *, const double *, const int64_t *, const double *, double *,
                   const int64_t *, size_t, size_t); /* Fortran's, with the lengths of its two texts */
typedef struct {
  Gpu *gpu;             /* NULL: none */
  const char *gpu_kind; /* opencl or cuda */
  void *library, *blas; /* NULL: none; their functions are below */
  const char *name;     /* of the BLAS */
  int threads;
  void *(*begin)(const char *kernel, size_t rows, size_t columns, size_t block, const double *initial);
  int (*update)(void *state, const double *const in[4], double *const out[4]);
  int (*end)(void *state, double *result);
  Dgemm *dgemm;
} Device;
Device open_device(void); /* from the environment; ends with user_error */
void close_device(Device *device);
bool locate_gpu(int number, char *address); /* as in Program */
bool describe_device(char *text); /* or why it cannot be opened, in COMPUTING_BYTES */

/* ---- task.c: computation on a rectangle ---- */
typedef struct Task Task;
enum { NORTH, EAST, SOUTH, WEST };
Task *begin_task(const Device *device, const char *kernel, size_t rows, size_t columns, size_t block,
                 const double *initial); /* NULL: zeros */
void update_task(Task *task, const double *const in[4], double *const out[4]); /* of a loaded task, `in` is not used */
/* On a GPU, the input of the next update may be loaded while this one is computed. */
bool computes_apart(const Task *task);
bool is_loaded(const Task *task); /* not yet started */
void load_task(Task *task, const double *const in[4]);
void start_task(Task *task); /* after load_task */
bool task_is_finished(Task *task, double *const out[4]);
const double *read_result(Task *task); /* after the last update; valid until end_task */
void end_task(Task *task);
/* Whether a cell of the wave is right after some steps: equal to the last bit, or on an accelerator, which may fuse
 * operations, nearly equal. */
bool same_cell(const Device *device, double cell, double wanted, int steps);

/* ---- gemm.c, stencil.c: the processor's own kernels ---- */
void multiply_add(const Device *device, size_t m, size_t n, size_t k, const double *a, const double *b, double *c);
/* `old` and `current` point to the first cell of the rectangle, which is surrounded by further cells. */
void wave_step(double *old, const double *current, size_t rows, size_t columns, size_t stride, int threads);
void copy_edges(const double *first, size_t rows, size_t columns, size_t stride, double *const out[4]);

/* ---- together.c: communication with a common start of all ranks ---- */
typedef struct {
  Alignment *alignment;
  double lead;
  int late; /* runs in which a rank was late in all attempts, or in the only one; the same on all ranks */
} AlignedRuns;
AlignedRuns make_aligned_runs(Alignment *alignment);
/* Collective: the seconds of `communicate`, which is repeated if a rank starts late. */
double run_aligned(AlignedRuns *aligned, double (*communicate)(void *state, int k), void *state, int k);
/* Collective: whether all ranks have started in time. If a rank arrived late, later starts have a longer lead. */
bool reduce_lateness(AlignedRuns *aligned, Lateness late);

/* ---- sample.c ---- */
/* Collective. `own`: seconds of the rank's communication in each iteration, then of its computation in each; `longest` has
 * as many elements. The sample is the sum of the longest, and late if more than a quarter of the iterations were late. */
void reduce_sample(Run *run, const AlignedRuns *aligned, int iterations, const double *own, double *longest, bool computes);
int kernel_main(int argc, char **argv, Program program); /* sets the fields that all kernels have in common */

/* ---- pivots.c: SUMMA's messages; a slot has the pivot column and row of one iteration ---- */
typedef struct Pivots Pivots;
/* Collective. a and b, the rank's rectangles of blocks of side x side doubles, may be NULL: then messages have any contents. */
Pivots *open_pivots(const Partition *partition, int rank, size_t block_bytes, int side, const double *a, const double *b);
void post_column(Pivots *p, int k, int slot);
void send_row(Pivots *p, int k, int slot); /* blocking, down the column */
void post_row(Pivots *p, int k, int slot);
void wait_pivots(Pivots *p, int slot);
bool have_pivots_arrived(Pivots *p, int slot);
const double *pivot_column(const Pivots *p, int slot);
const double *pivot_row(const Pivots *p, int k, int slot);
void fill_pivots(Pivots *p, int k, int slot); /* a pattern that is sent without a and b, and its check */
void check_pivots(const Pivots *p, int k, int slot);
void close_pivots(Pivots *p);

/* ---- product.c: verification of C = A B; collective ---- */
typedef struct {
  Rectangle rectangle;
  int side;              /* of a block, in doubles */
  size_t n, first, last; /* of the matrix; the columns of A and rows of B that were multiplied */
  double *vector, *wanted, *allowed;
  bool verified_elements;
} Product;
Product *open_product(const Partition *partition, int rank, int side, int first, int last, const double *a, const double *b);
void verify_product(Product *product, const double *c); /* ends the program if it is wrong */
void close_product(Product *product);

/* ---- edges.c: messages between touching rectangles in a step of the wave ---- */
typedef struct Edges Edges;
Edges *open_edges(const Partition *partition, int rank, size_t cell_bytes);
double *const *own_edges(const Edges *edges);         /* NORTH, EAST, SOUTH, WEST of the rectangle */
const double *const *received_edges(const Edges *edges); /* the adjacent cells of neighbours; zeros at the border */
void exchange_edges(Edges *edges);
void fill_edges(Edges *edges, int turn); /* a pattern that is sent without computation, and its check */
void check_edges(const Edges *edges, int turn);
void close_edges(Edges *edges);

/* ---- numbers.c: reproducible elements of matrices, between -1/2 and 1/2 ---- */
typedef enum { MATRIX_A, MATRIX_B, VECTOR, WAVE } Numbers;
double number_at(Numbers numbers, uint64_t row, uint64_t column);
double *make_numbers_of(Numbers numbers, Rectangle blocks, int side); /* of side x side numbers each; free() them */
int block_side(long long bytes); /* of a square block of doubles; 0 if it is no square */

#endif
