/* verify: tests whether the MPI library returns correct results for legal but unusual inputs.
 *
 * A case is one call of a collective operation on a communicator of some size, with one of these inputs:
 *
 *   plain     the same count and datatype on every rank
 *   empty     nothing to send: a count of 0 on every rank
 *   few       fewer elements than ranks
 *   root      the root is the last rank
 *   in-place  MPI_IN_PLACE, with a count of 0 and MPI_DATATYPE_NULL where MPI ignores them
 *   ignored   MPI_IN_PLACE, with arguments that MPI ignores and that differ from rank to rank
 *   bare      the arguments that only the root needs are 0 and NULL on all other ranks
 *   types     a derived datatype with gaps; for reductions, a user-defined operation that commutes
 *   mixed     the ranks describe the same bytes by different datatypes and counts
 *   order     an operation that does not commute
 *   uneven    for reduce-scatter: some ranks get nothing
 *
 * A communicator that is smaller than MPI_COMM_WORLD consists of its last ranks in reverse order. The program compares
 * every byte, including gaps, with the result defined by MPI. A wrong byte ends it with a message that names operation
 * and input.
 *
 *   mpiexec -n 9 verify --cases cases.csv --out samples      cases.csv: id,collective,input,communicator,bytes
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPERATION_COLUMN, INPUT_COLUMN, RANKS_COLUMN, BYTES_COLUMN, COLUMNS };
static const Column columns[] = {
    {"collective", "", "the collective operation", WORD},
    {"input", "", "arguments of the call: plain, empty, few, …", WORD},
    {"communicator", "ranks", "size of the communicator", COUNT},
    {"bytes", "B", "size of a message, block or vector, depending on the operation", BYTES},
};

typedef enum { PLAIN, EMPTY, FEW, ROOT, IN_PLACE, IGNORED, BARE, TYPES, MIXED, ORDER, UNEVEN, INPUTS } Input;
static const char *const input_names[] = {"plain", "empty", "few",   "root",  "in-place", "ignored",
                                          "bare",  "types", "mixed", "order", "uneven"};
enum { BLOCK = 4, STRIDE = 8, UNTOUCHED = 0xa5 }; /* bytes of a datatype with gaps, and the content of gaps */

typedef struct {
  MPI_Comm comm;
  int rank, ranks, root;
  Input input;
  size_t bytes;      /* of one block or vector */
  MPI_Datatype type; /* of the bytes that are sent and received */
  int count;         /* number of them in a block or vector */
  MPI_Datatype pair; /* of a reduction's elements */
  MPI_Op op;
} Call;

typedef struct {
  const char *name;
  unsigned inputs; /* a bit for each */
  void (*verify)(Call *c);
} Operation;

typedef struct {
  const Operation *operation;
  Call call;
} State;

#define BIT(input) (1u << (input))
enum {
  ANY = BIT(PLAIN) | BIT(EMPTY) | BIT(FEW),
  MOVES = ANY | BIT(TYPES) | BIT(MIXED),
  SUMS = ANY | BIT(IN_PLACE) | BIT(TYPES) | BIT(ORDER),
};

static _Noreturn void report_wrong_byte(const Call *c, const char *operation, size_t at, size_t count)
{
  DIE("%s, input %s, %d ranks, %zu B: byte %zu of %zu on rank %d is wrong", operation, input_names[c->input], c->ranks,
      c->bytes, at, count, c->rank);
}

static unsigned char content(int src, int dst, size_t i)
{
  uint32_t z = (uint32_t)(src + 1) * 0x9e3779b1u ^ (uint32_t)(dst + 1) * 0x85ebca77u ^ (uint32_t)i * 0xc2b2ae3du;
  return (unsigned char)((z ^ z >> 15) * 0x2c1b3c6du >> 24);
}

static size_t byte_offset(const Call *c, size_t i)
{
  return c->input == TYPES ? i / BLOCK * STRIDE + i % BLOCK : i;
}

static size_t buffer_bytes(const Call *c, int blocks)
{
  return (size_t)blocks * (c->input == TYPES ? c->bytes / BLOCK * STRIDE : c->bytes);
}

static unsigned char *empty_buffer(size_t bytes)
{
  unsigned char *buffer = allocate(bytes + 1, 1);
  memset(buffer, UNTOUCHED, bytes + 1);
  return buffer;
}

/* Fills block number `block` of a buffer with the data that src sends to dst. */
static void put_block(const Call *c, unsigned char *buffer, int block, int src, int dst)
{
  for (size_t i = 0; i < c->bytes; i++) buffer[byte_offset(c, (size_t)block * c->bytes + i)] = content(src, dst, i);
}

static void compare(const Call *c, const char *operation, unsigned char *received, unsigned char *wanted, size_t bytes)
{
  for (size_t i = 0; i <= bytes; i++)
    if (received[i] != wanted[i]) report_wrong_byte(c, operation, i, bytes);
  free(received);
  free(wanted);
}

/* Arguments that describe data. */
typedef struct {
  void *buffer;
  int count;
  MPI_Datatype type;
} Data;

static Data ignored_data(const Call *c, void *buffer)
{
  bool bare = c->input == BARE || c->input == IN_PLACE || (c->input == IGNORED && c->rank % 2);
  return bare ? (Data){NULL, 0, MPI_DATATYPE_NULL} : (Data){buffer, c->count, c->type};
}

static Data in_place_data(const Call *c)
{
  Data data = ignored_data(c, NULL);
  return (Data){MPI_IN_PLACE, data.count, data.type};
}

/* A message described as a single element of a derived datatype. */
static Data single_element_data(const Call *c, void *buffer, MPI_Datatype *whole)
{
  MPI_TRY(MPI_Type_contiguous((int)c->bytes, MPI_BYTE, whole));
  MPI_TRY(MPI_Type_commit(whole));
  return (Data){buffer, 1, *whole};
}

static void verify_bcast(Call *c)
{
  unsigned char *buffer = empty_buffer(buffer_bytes(c, 1)), *wanted = empty_buffer(buffer_bytes(c, 1));
  put_block(c, wanted, 0, c->root, 0);
  if (c->rank == c->root) put_block(c, buffer, 0, c->root, 0);
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  Data data = {buffer, c->count, c->type};
  if (c->input == MIXED && c->rank == c->root) data = single_element_data(c, buffer, &whole);
  MPI_TRY(MPI_Bcast(data.buffer, data.count, data.type, c->root, c->comm));
  if (whole != MPI_DATATYPE_NULL) MPI_TRY(MPI_Type_free(&whole));
  compare(c, "bcast", buffer, wanted, buffer_bytes(c, 1));
}

static void verify_gather(Call *c)
{
  bool root = c->rank == c->root, in_place_input = c->input == IN_PLACE;
  size_t size = root ? buffer_bytes(c, c->ranks) : 0;
  unsigned char *sent = empty_buffer(buffer_bytes(c, 1)), *received = empty_buffer(size), *wanted = empty_buffer(size);
  put_block(c, sent, 0, c->rank, c->root);
  for (int r = 0; root && r < c->ranks; r++) put_block(c, wanted, r, r, c->root);
  if (root && in_place_input) put_block(c, received, c->rank, c->rank, c->root);
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  Data from = {sent, c->count, c->type}, to = root ? (Data){received, c->count, c->type} : ignored_data(c, received);
  if (root && in_place_input) from = in_place_data(c);
  if (c->input == MIXED && !root) from = single_element_data(c, sent, &whole);
  MPI_TRY(MPI_Gather(from.buffer, from.count, from.type, to.buffer, to.count, to.type, c->root, c->comm));
  if (whole != MPI_DATATYPE_NULL) MPI_TRY(MPI_Type_free(&whole));
  free(sent);
  compare(c, "gather", received, wanted, size);
}

static void verify_scatter(Call *c)
{
  bool root = c->rank == c->root, in_place_input = root && c->input == IN_PLACE;
  size_t size = in_place_input ? 0 : buffer_bytes(c, 1);
  unsigned char *sent = empty_buffer(root ? buffer_bytes(c, c->ranks) : 0), *received = empty_buffer(size);
  unsigned char *wanted = empty_buffer(size);
  for (int r = 0; root && r < c->ranks; r++) put_block(c, sent, r, c->root, r);
  if (!in_place_input) put_block(c, wanted, 0, c->root, c->rank);
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  Data from = root ? (Data){sent, c->count, c->type} : ignored_data(c, sent), to = {received, c->count, c->type};
  if (in_place_input) to = in_place_data(c);
  if (c->input == MIXED && !root) to = single_element_data(c, received, &whole);
  MPI_TRY(MPI_Scatter(from.buffer, from.count, from.type, to.buffer, to.count, to.type, c->root, c->comm));
  if (whole != MPI_DATATYPE_NULL) MPI_TRY(MPI_Type_free(&whole));
  free(sent);
  compare(c, "scatter", received, wanted, size);
}

static void verify_allgather(Call *c)
{
  bool in_place_input = c->input == IN_PLACE || c->input == IGNORED;
  size_t size = buffer_bytes(c, c->ranks);
  unsigned char *sent = empty_buffer(buffer_bytes(c, 1)), *received = empty_buffer(size), *wanted = empty_buffer(size);
  put_block(c, sent, 0, c->rank, 0);
  for (int r = 0; r < c->ranks; r++) put_block(c, wanted, r, r, 0);
  if (in_place_input) put_block(c, received, c->rank, c->rank, 0);
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  Data from = in_place_input ? in_place_data(c) : (Data){sent, c->count, c->type};
  if (c->input == MIXED && c->rank % 2) from = single_element_data(c, sent, &whole);
  MPI_TRY(MPI_Allgather(from.buffer, from.count, from.type, received, c->count, c->type, c->comm));
  if (whole != MPI_DATATYPE_NULL) MPI_TRY(MPI_Type_free(&whole));
  free(sent);
  compare(c, "allgather", received, wanted, size);
}

static void verify_alltoall(Call *c)
{
  bool in_place_input = c->input == IN_PLACE || c->input == IGNORED;
  size_t size = buffer_bytes(c, c->ranks);
  unsigned char *sent = empty_buffer(size), *received = empty_buffer(size), *wanted = empty_buffer(size);
  for (int r = 0; r < c->ranks; r++) {
    put_block(c, in_place_input ? received : sent, r, c->rank, r);
    put_block(c, wanted, r, r, c->rank);
  }
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  Data from = in_place_input ? in_place_data(c) : (Data){sent, c->count, c->type};
  if (c->input == MIXED && c->rank % 2) from = single_element_data(c, sent, &whole);
  MPI_TRY(MPI_Alltoall(from.buffer, from.count, from.type, received, c->count, c->type, c->comm));
  if (whole != MPI_DATATYPE_NULL) MPI_TRY(MPI_Type_free(&whole));
  free(sent);
  compare(c, "alltoall", received, wanted, size);
}

/* The element of a reduction: the function x -> a·x + b modulo 2^32. Compositions do not commute, except with a = 1. */
typedef struct {
  uint32_t a, b;
} Pair;

static Pair combine(Pair first, Pair second)
{
  return (Pair){first.a * second.a, first.a * second.b + first.b};
}

static void combine_all(void *first, void *second, int *count, MPI_Datatype *type)
{
  (void)type;
  for (int i = 0; i < *count; i++)
    ((Pair *)second)[i] = combine(((const Pair *)first)[i], ((const Pair *)second)[i]);
}

static Pair element(const Call *c, int rank, size_t i)
{
  uint32_t b = (uint32_t)(rank + 1) * 2654435761u + (uint32_t)i * 40503u;
  return (Pair){c->input == ORDER ? 2 * (uint32_t)rank + 3 : c->input == TYPES ? 1 : 0, b};
}

/* Elements from..to-1 of all ranks' vectors, combined in the order of the ranks. */
static Pair *combined(const Call *c, size_t from, size_t to)
{
  Pair *result = allocate(to - from + 1, sizeof *result);
  for (size_t i = from; i < to; i++) {
    Pair sum = element(c, 0, i);
    for (int r = 1; r < c->ranks; r++) {
      Pair next = element(c, r, i);
      bool own = c->input == ORDER || c->input == TYPES;
      sum = own ? combine(sum, next) : (Pair){0, sum.b + next.b};
    }
    result[i - from] = sum;
  }
  return result;
}

static Pair *make_vector(const Call *c, size_t count)
{
  Pair *elements = allocate(count + 1, sizeof *elements);
  for (size_t i = 0; i < count; i++) elements[i] = element(c, c->rank, i);
  return elements;
}

/* MPI_SUM adds both halves of a pair. */
static int mpi_count(const Call *c, size_t pairs)
{
  return (int)(c->pair == MPI_UINT32_T ? 2 * pairs : pairs);
}

static void compare_pairs(const Call *c, const char *operation, Pair *received, Pair *wanted, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (received[i].a != wanted[i].a || received[i].b != wanted[i].b)
      report_wrong_byte(c, operation, i * sizeof(Pair), count * sizeof(Pair));
  free(wanted);
}

static void verify_reduce(Call *c)
{
  size_t count = c->bytes / sizeof(Pair);
  bool root = c->rank == c->root;
  Pair *sent = make_vector(c, count), *received = allocate(count + 1, sizeof *received);
  if (root && c->input == IN_PLACE) memcpy(received, sent, count * sizeof *sent);
  MPI_TRY(MPI_Reduce(root && c->input == IN_PLACE ? MPI_IN_PLACE : (void *)sent, root ? received : NULL,
                     mpi_count(c, count), c->pair, c->op, c->root, c->comm));
  if (root) compare_pairs(c, "reduce", received, combined(c, 0, count), count);
  free(sent);
  free(received);
}

static void verify_allreduce(Call *c)
{
  size_t count = c->bytes / sizeof(Pair);
  Pair *sent = make_vector(c, count), *received = make_vector(c, count);
  MPI_TRY(MPI_Allreduce(c->input == IN_PLACE ? MPI_IN_PLACE : (void *)sent, received, mpi_count(c, count), c->pair, c->op,
                        c->comm));
  compare_pairs(c, "allreduce", received, combined(c, 0, count), count);
  free(sent);
  free(received);
}

/* Pairs that rank r receives: equal shares, the larger ones first; for uneven, twice as many on every second rank. */
static size_t share(const Call *c, size_t count, int r)
{
  size_t ranks = (size_t)c->ranks;
  if (c->input != UNEVEN) return count / ranks + ((size_t)r < count % ranks);
  size_t receivers = ranks / 2, receiver = (size_t)r / 2;
  return receivers == 0 ? count : r % 2 ? count / receivers + (receiver < count % receivers) : 0;
}

static void verify_reduce_scatter(Call *c)
{
  size_t count = c->bytes / sizeof(Pair), first = 0;
  int *shares = allocate((size_t)c->ranks, sizeof *shares);
  for (int r = 0; r < c->ranks; r++) {
    if (r < c->rank) first += share(c, count, r);
    shares[r] = mpi_count(c, share(c, count, r));
  }
  size_t own = share(c, count, c->rank);
  Pair *sent = make_vector(c, count), *received = make_vector(c, count);
  MPI_TRY(MPI_Reduce_scatter(c->input == IN_PLACE ? MPI_IN_PLACE : (void *)sent, received, shares, c->pair, c->op,
                             c->comm));
  compare_pairs(c, "reduce-scatter", received, combined(c, first, first + own), own);
  free(shares);
  free(sent);
  free(received);
}

/* The last rank enters late, so the others have to wait. A rank that was preempted may have entered late itself, so it
 * has to wait in one of a few attempts. */
static void verify_barrier(Call *c)
{
  const double delay = 0.02;
  double longest = 0;
  for (int attempt = 0; attempt < 5; attempt++) {
    MPI_TRY(MPI_Allreduce(MPI_IN_PLACE, &(int){0}, 1, MPI_INT, MPI_SUM, c->comm));
    double begin = MPI_Wtime();
    if (c->rank == c->ranks - 1) nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * delay)}, NULL);
    MPI_TRY(MPI_Barrier(c->comm));
    double waited = MPI_Wtime() - begin;
    if (waited > longest) longest = waited;
  }
  if (longest < delay / 4) DIE("barrier, %d ranks: rank %d left before all ranks had entered", c->ranks, c->rank);
}

static const Operation operations[] = {
    {"allgather", MOVES | BIT(IN_PLACE) | BIT(IGNORED), verify_allgather},
    {"allreduce", SUMS, verify_allreduce},
    {"alltoall", MOVES | BIT(IN_PLACE) | BIT(IGNORED), verify_alltoall},
    {"barrier", BIT(PLAIN), verify_barrier},
    {"bcast", MOVES | BIT(ROOT), verify_bcast},
    {"gather", MOVES | BIT(ROOT) | BIT(IN_PLACE) | BIT(BARE), verify_gather},
    {"reduce", SUMS | BIT(ROOT), verify_reduce},
    {"reduce-scatter", SUMS | BIT(UNEVEN), verify_reduce_scatter},
    {"scatter", MOVES | BIT(ROOT) | BIT(IN_PLACE) | BIT(BARE), verify_scatter},
};

static const Operation *find_operation(const char *name)
{
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
    if (strcmp(operations[k].name, name) == 0) return &operations[k];
  return NULL;
}

static Input find_input(const char *name)
{
  int k = 0;
  while (k < INPUTS && strcmp(input_names[k], name) != 0) k++;
  return (Input)k;
}

static void check(const Case *c, int ranks)
{
  const Operation *operation = find_operation(c->fields[OPERATION_COLUMN].text);
  if (!operation) case_error(c, "collective", c->fields[OPERATION_COLUMN].text, "a collective operation");
  Input input = find_input(c->fields[INPUT_COLUMN].text);
  if (input == INPUTS || !(operation->inputs & BIT(input)))
    case_error(c, "input", c->fields[INPUT_COLUMN].text, "an input that the operation has");
  if (c->fields[RANKS_COLUMN].count < 1) case_error(c, "communicator", c->fields[RANKS_COLUMN].text, "at least 1");
  require_ranks(c, "communicator", c->fields[RANKS_COLUMN].count, ranks);
}

static size_t data_size(const Operation *operation, Input input, size_t bytes, int ranks)
{
  bool sums = (operation->inputs & BIT(ORDER)) != 0;
  size_t least = sums ? sizeof(Pair) : input == TYPES ? BLOCK : 1;
  if (input == EMPTY) return 0;
  if (input == FEW) return sums && ranks > 1 ? (size_t)(ranks - 1) / 2 * least : least;
  return bytes < least ? least : bytes / least * least;
}

static void *prepare(const Case *c, Run *run)
{
  State *s = allocate(1, sizeof *s);
  Call *call = &s->call;
  s->operation = find_operation(c->fields[OPERATION_COLUMN].text);
  call->input = find_input(c->fields[INPUT_COLUMN].text);
  call->ranks = (int)c->fields[RANKS_COLUMN].count;
  call->bytes = data_size(s->operation, call->input, (size_t)c->fields[BYTES_COLUMN].count, call->ranks);
  bool inside = run->rank >= run->ranks - call->ranks, all = call->ranks == run->ranks;
  MPI_TRY(MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : MPI_UNDEFINED, all ? run->rank : -run->rank, &call->comm));
  if (!inside) return s;
  MPI_TRY(MPI_Comm_rank(call->comm, &call->rank));
  call->root = call->input == ROOT ? call->ranks - 1 : 0;
  call->type = MPI_BYTE;
  call->count = (int)call->bytes;
  if (call->input == TYPES) {
    MPI_Datatype block;
    MPI_TRY(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block));
    MPI_TRY(MPI_Type_create_resized(block, 0, STRIDE, &call->type));
    MPI_TRY(MPI_Type_commit(&call->type));
    MPI_TRY(MPI_Type_free(&block));
    call->count = (int)(call->bytes / BLOCK);
  }
  call->pair = MPI_UINT32_T;
  call->op = MPI_SUM;
  if (call->input == ORDER || call->input == TYPES) {
    MPI_TRY(MPI_Type_contiguous(2, MPI_UINT32_T, &call->pair));
    MPI_TRY(MPI_Type_commit(&call->pair));
    MPI_TRY(MPI_Op_create(combine_all, call->input == TYPES, &call->op));
  }
  return s;
}

static void pass(void *state)
{
  State *s = state;
  if (s->call.comm != MPI_COMM_NULL) s->operation->verify(&s->call);
}

static void cleanup(void *state)
{
  State *s = state;
  Call *call = &s->call;
  if (call->comm != MPI_COMM_NULL) {
    if (call->input == TYPES) MPI_TRY(MPI_Type_free(&call->type));
    if (call->op != MPI_SUM) {
      MPI_TRY(MPI_Op_free(&call->op));
      MPI_TRY(MPI_Type_free(&call->pair));
    }
    MPI_TRY(MPI_Comm_free(&call->comm));
  }
  free(s);
}

int main(int argc, char **argv)
{
  static const Program program = {
      .name = "verify", .title = "Results of the MPI library's collectives for unusual inputs", .kind = "player",
      .columns = columns, .ncolumns = COLUMNS, .min_ranks = 1, .timing = TIMED_BY_HARNESS,
      .check = check, .prepare = prepare, .pass = pass, .cleanup = cleanup,
  };
  return harness_main(argc, argv, &program);
}
