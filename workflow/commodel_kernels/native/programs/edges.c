/* edges.c: exchange of the cells along a rectangle's sides with ranks whose rectangles touch them. A five-point stencil
 * needs no corners. Two rectangles touch along at most one side, so a pair has one message in each direction.
 */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { SIDES = 4, TAG = 2 };

typedef struct {
  int rank, side, first, length; /* along this rank's side */
} Neighbour;

struct Edges {
  Rectangle own;
  int rank;
  size_t cell_bytes, lengths[SIDES];
  char *sent[SIDES], *received[SIDES];
  double *own_cells[SIDES];
  const double *beyond[SIDES];
  Neighbour *neighbours;
  int count;
  MPI_Request *requests;
};

/* The side of `a` that `b` touches, or -1, and the first cell and length of the common part. */
static int touching_side(Rectangle a, Rectangle b, int *first, int *length)
{
  int rows = shared_length(a.y, a.height, b.y, b.height), columns = shared_length(a.x, a.width, b.x, b.width);
  *length = rows ? rows : columns;
  *first = rows ? (b.y > a.y ? b.y - a.y : 0) : (b.x > a.x ? b.x - a.x : 0);
  if (rows && b.x == a.x + a.width) return EAST;
  if (rows && a.x == b.x + b.width) return WEST;
  if (columns && b.y == a.y + a.height) return SOUTH;
  return columns && a.y == b.y + b.height ? NORTH : -1;
}

Edges *open_edges(const Partition *partition, int rank, size_t cell_bytes)
{
  Edges *e = allocate(1, sizeof *e);
  *e = (Edges){.own = rectangle_of(partition, rank), .rank = rank, .cell_bytes = cell_bytes};
  e->neighbours = allocate((size_t)partition->ranks, sizeof *e->neighbours);
  for (int q = 0; q < partition->ranks; q++) {
    int first, length, side = touching_side(e->own, partition->of[q], &first, &length);
    if (q != rank && side >= 0) e->neighbours[e->count++] = (Neighbour){q, side, first, length};
  }
  e->requests = allocate((size_t)e->count * 2, sizeof *e->requests);
  for (int side = 0; side < SIDES; side++) {
    e->lengths[side] = (size_t)(side == NORTH || side == SOUTH ? e->own.width : e->own.height);
    e->sent[side] = allocate_buffer(e->lengths[side], cell_bytes);
    e->received[side] = allocate_buffer(e->lengths[side], cell_bytes);
    memset(e->received[side], 0, e->lengths[side] * cell_bytes);
    e->own_cells[side] = (double *)(void *)e->sent[side];
    e->beyond[side] = (const double *)(const void *)e->received[side];
  }
  return e;
}

double *const *own_edges(const Edges *e) { return e->own_cells; }

const double *const *received_edges(const Edges *e) { return e->beyond; }

void exchange_edges(Edges *e)
{
  int posted = 0;
  for (const Neighbour *n = e->neighbours; n < e->neighbours + e->count; n++)
    MPI_TRY(MPI_Irecv(e->received[n->side] + (size_t)n->first * e->cell_bytes, (int)((size_t)n->length * e->cell_bytes),
                      MPI_BYTE, n->rank, TAG, MPI_COMM_WORLD, &e->requests[posted++]));
  for (const Neighbour *n = e->neighbours; n < e->neighbours + e->count; n++)
    MPI_TRY(MPI_Isend(e->sent[n->side] + (size_t)n->first * e->cell_bytes, (int)((size_t)n->length * e->cell_bytes),
                      MPI_BYTE, n->rank, TAG, MPI_COMM_WORLD, &e->requests[posted++]));
  MPI_TRY(MPI_Waitall(posted, e->requests, MPI_STATUSES_IGNORE));
}

/* Byte i of the data of the cell at (x, y) for the neighbours at one of its sides. */
static char cell_byte(int x, int y, int side, int turn, size_t i)
{
  uint32_t z = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u ^ (uint32_t)(SIDES * turn + side) * 0xc2b2ae3du;
  z += (uint32_t)i * 0x27d4eb2fu;
  return (char)((z ^ z >> 15) * 0x2c1b3c6du >> 24);
}

/* Coordinates of a cell of a side, or with `beyond` of the neighbour's adjacent cell. */
static void locate_cell(const Edges *e, int side, size_t cell, bool beyond, int *x, int *y)
{
  int along = (int)cell, across = beyond ? 1 : 0;
  *x = side == WEST ? e->own.x - across : side == EAST ? e->own.x + e->own.width - 1 + across : e->own.x + along;
  *y = side == NORTH ? e->own.y - across : side == SOUTH ? e->own.y + e->own.height - 1 + across : e->own.y + along;
}

void fill_edges(Edges *e, int turn)
{
  int x, y;
  for (int side = 0; side < SIDES; side++)
    for (size_t cell = 0; cell < e->lengths[side]; cell++) {
      locate_cell(e, side, cell, false, &x, &y);
      for (size_t i = 0; i < e->cell_bytes; i++)
        e->sent[side][cell * e->cell_bytes + i] = cell_byte(x, y, side, turn, i);
    }
}

void check_edges(const Edges *e, int turn)
{
  int x, y;
  for (const Neighbour *n = e->neighbours; n < e->neighbours + e->count; n++)
    for (size_t cell = (size_t)n->first; cell < (size_t)(n->first + n->length); cell++) {
      locate_cell(e, n->side, cell, true, &x, &y);
      for (size_t i = 0; i < e->cell_bytes; i++)
        if (e->received[n->side][cell * e->cell_bytes + i] != cell_byte(x, y, (n->side + 2) % SIDES, turn, i))
          DIE("the cell (%d, %d) of rank %d arrived at rank %d with wrong content", x, y, n->rank, e->rank);
    }
}

void close_edges(Edges *e)
{
  for (int side = 0; side < SIDES; side++) {
    free(e->sent[side]);
    free(e->received[side]);
  }
  free(e->neighbours);
  free(e->requests);
  free(e);
}
