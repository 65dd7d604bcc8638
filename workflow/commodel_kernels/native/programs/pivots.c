/* pivots.c: the pivot block column and row of one iteration of SUMMA, as Rico-Gallego et al. 2017 send them
 * (Algorithm 1).
 *
 * A rank with a part of the pivot column packs it, and sends to every rank with common rows of blocks these blocks, all
 * messages at once. A rank with a part of the pivot row sends it to the others of its column of rectangles, one after the
 * other, without packing. In the overlapped variant messages of the row are non-blocking, too.
 */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, TAG = 1 };

/* A rank with rows of blocks in common with this one. */
typedef struct {
  int rank, first, rows; /* first: row of blocks of this rank's rectangle */
  Rectangle rectangle;
} Peer;

struct Pivots {
  Rectangle own;
  size_t block_bytes;
  int side;
  const double *a, *b;
  Peer *peers;
  int npeers;
  MPI_Comm column;  /* the ranks of its column of rectangles, in their order */
  int members, self;
  Rectangle *rectangles; /* of its members */
  char *columns[SLOTS], *rows[SLOTS];
  MPI_Request *requests[SLOTS];
  int posted[SLOTS];
};

static bool contains(int start, int length, int k) { return k >= start && k < start + length; }

static void find_peers(Pivots *p, const Partition *partition, int rank)
{
  p->peers = allocate((size_t)partition->ranks, sizeof *p->peers);
  for (int q = 0; q < partition->ranks; q++) {
    Rectangle other = partition->of[q];
    int rows = shared_length(p->own.y, p->own.height, other.y, other.height);
    int first = other.y > p->own.y ? other.y - p->own.y : 0;
    if (q != rank && rows) p->peers[p->npeers++] = (Peer){q, first, rows, other};
  }
}

static void join_column(Pivots *p)
{
  MPI_TRY(MPI_Comm_split(MPI_COMM_WORLD, p->own.width ? p->own.x : MPI_UNDEFINED, 0, &p->column));
  if (p->column == MPI_COMM_NULL) return;
  MPI_TRY(MPI_Comm_size(p->column, &p->members));
  MPI_TRY(MPI_Comm_rank(p->column, &p->self));
  p->rectangles = allocate((size_t)p->members, sizeof *p->rectangles);
  int numbers = (int)(sizeof(Rectangle) / sizeof(int));
  MPI_TRY(MPI_Allgather(&p->own, numbers, MPI_INT, p->rectangles, numbers, MPI_INT, p->column));
}

Pivots *open_pivots(const Partition *partition, int rank, size_t block_bytes, int side, const double *a, const double *b)
{
  Pivots *p = allocate(1, sizeof *p);
  *p = (Pivots){.own = rectangle_of(partition, rank), .block_bytes = block_bytes, .side = side, .a = a, .b = b};
  find_peers(p, partition, rank);
  join_column(p);
  for (int slot = 0; slot < SLOTS; slot++) {
    p->columns[slot] = allocate_buffer((size_t)p->own.height, block_bytes);
    p->rows[slot] = allocate_buffer((size_t)p->own.width, block_bytes);
    p->requests[slot] = allocate((size_t)(p->npeers + p->members + 1), sizeof *p->requests[slot]);
  }
  return p;
}

/* Packs a column of blocks into a contiguous buffer. */
static void pack_column(Pivots *p, int k, int slot)
{
  size_t length = (size_t)p->side * sizeof *p->a, stride = (size_t)p->own.width * (size_t)p->side;
  const double *from = p->a + (size_t)(k - p->own.x) * (size_t)p->side;
  for (size_t i = 0; i < (size_t)p->own.height * (size_t)p->side; i++)
    memcpy(p->columns[slot] + i * length, from + i * stride, length);
}

void post_column(Pivots *p, int k, int slot)
{
  bool owner = contains(p->own.x, p->own.width, k);
  if (owner && p->a) pack_column(p, k, slot);
  for (const Peer *q = p->peers; q < p->peers + p->npeers; q++) {
    char *part = p->columns[slot] + (size_t)q->first * p->block_bytes;
    int bytes = (int)((size_t)q->rows * p->block_bytes);
    MPI_Request *request = &p->requests[slot][p->posted[slot]];
    if (owner)
      MPI_TRY(MPI_Isend(part, bytes, MPI_BYTE, q->rank, TAG, MPI_COMM_WORLD, request));
    else if (contains(q->rectangle.x, q->rectangle.width, k))
      MPI_TRY(MPI_Irecv(part, bytes, MPI_BYTE, q->rank, TAG, MPI_COMM_WORLD, request));
    else
      continue;
    p->posted[slot]++;
  }
}

static char *row_place(const Pivots *p, int k, int slot)
{
  if (!p->b || !contains(p->own.y, p->own.height, k)) return p->rows[slot];
  return (char *)(p->b + (size_t)(k - p->own.y) * (size_t)p->side * (size_t)p->own.width * (size_t)p->side);
}

static int row_owner(const Pivots *p, int k)
{
  int owner = 0;
  while (owner < p->members && !contains(p->rectangles[owner].y, p->rectangles[owner].height, k)) owner++;
  return owner;
}

void send_row(Pivots *p, int k, int slot)
{
  char *row = row_place(p, k, slot);
  int bytes = (int)((size_t)p->own.width * p->block_bytes), owner = row_owner(p, k);
  if (p->members && owner != p->self) MPI_TRY(MPI_Recv(row, bytes, MPI_BYTE, owner, TAG, p->column, MPI_STATUS_IGNORE));
  for (int q = 0; owner == p->self && q < p->members; q++)
    if (q != p->self) MPI_TRY(MPI_Send(row, bytes, MPI_BYTE, q, TAG, p->column));
}

void post_row(Pivots *p, int k, int slot)
{
  char *row = row_place(p, k, slot);
  int bytes = (int)((size_t)p->own.width * p->block_bytes), owner = row_owner(p, k);
  MPI_Request *requests = p->requests[slot];
  if (p->members && owner != p->self)
    MPI_TRY(MPI_Irecv(row, bytes, MPI_BYTE, owner, TAG, p->column, &requests[p->posted[slot]++]));
  for (int q = 0; owner == p->self && q < p->members; q++)
    if (q != p->self) MPI_TRY(MPI_Isend(row, bytes, MPI_BYTE, q, TAG, p->column, &requests[p->posted[slot]++]));
}

void wait_pivots(Pivots *p, int slot)
{
  MPI_TRY(MPI_Waitall(p->posted[slot], p->requests[slot], MPI_STATUSES_IGNORE));
  p->posted[slot] = 0;
}

bool have_pivots_arrived(Pivots *p, int slot)
{
  int arrived = 0;
  MPI_TRY(MPI_Testall(p->posted[slot], p->requests[slot], &arrived, MPI_STATUSES_IGNORE));
  if (arrived) p->posted[slot] = 0;
  return arrived;
}

const double *pivot_column(const Pivots *p, int slot) { return (const double *)(const void *)p->columns[slot]; }

const double *pivot_row(const Pivots *p, int k, int slot) { return (const double *)(const void *)row_place(p, k, slot); }

enum { WORD_BYTES = sizeof(uint64_t) };

/* The first word of a block of the pivot column (in row `place` of blocks) or of the pivot row (in column `place`). Each
 * next word is larger by `step`; an incomplete word at the end of a block is the start of one. */
static uint64_t first_word(int k, bool of_row, int place)
{
  uint64_t z = ((uint64_t)k << 32 | (uint64_t)(2 * place + of_row)) * 0x9e3779b97f4a7c15u;
  return (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
}

static const uint64_t step = 0x94d049bb133111ebu;

static void fill_block(char *block, size_t bytes, uint64_t pattern_word)
{
  size_t at = 0;
  for (; at + WORD_BYTES <= bytes; at += WORD_BYTES, pattern_word += step) memcpy(block + at, &pattern_word, WORD_BYTES);
  memcpy(block + at, &pattern_word, bytes - at);
}

static bool equals_block(const char *block, size_t bytes, uint64_t pattern_word)
{
  uint64_t differ = 0, arrived;
  size_t at = 0;
  for (; at + WORD_BYTES <= bytes; at += WORD_BYTES, pattern_word += step) {
    memcpy(&arrived, block + at, WORD_BYTES);
    differ |= arrived ^ pattern_word;
  }
  return !differ && memcmp(block + at, &pattern_word, bytes - at) == 0;
}

static void fill(char *blocks, size_t bytes, int count, int k, bool of_row, int first, bool owned)
{
  if (!owned) memset(blocks, 0xa5, (size_t)count * bytes);
  for (int n = 0; owned && n < count; n++)
    fill_block(blocks + (size_t)n * bytes, bytes, first_word(k, of_row, first + n));
}

void fill_pivots(Pivots *p, int k, int slot)
{
  fill(p->columns[slot], p->block_bytes, p->own.height, k, false, p->own.y, contains(p->own.x, p->own.width, k));
  fill(p->rows[slot], p->block_bytes, p->own.width, k, true, p->own.x, contains(p->own.y, p->own.height, k));
}

static void check_blocks(const char *blocks, size_t bytes, int count, int k, bool of_row, int first)
{
  for (int n = 0; n < count; n++)
    if (!equals_block(blocks + (size_t)n * bytes, bytes, first_word(k, of_row, first + n)))
      DIE("block %d of the pivot %s of iteration %d arrived with wrong content", first + n, of_row ? "row" : "column", k);
}

void check_pivots(const Pivots *p, int k, int slot)
{
  check_blocks(p->columns[slot], p->block_bytes, p->own.height, k, false, p->own.y);
  check_blocks(p->rows[slot], p->block_bytes, p->own.width, k, true, p->own.x);
}

void close_pivots(Pivots *p)
{
  if (p->column != MPI_COMM_NULL) MPI_TRY(MPI_Comm_free(&p->column));
  for (int slot = 0; slot < SLOTS; slot++) {
    free(p->columns[slot]);
    free(p->rows[slot]);
    free(p->requests[slot]);
  }
  free(p->rectangles);
  free(p->peers);
  free(p);
}
