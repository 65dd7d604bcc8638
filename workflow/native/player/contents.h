/* contents.h: data for the library's collectives, and the check of received data. */
#ifndef COMMODEL_CONTENTS_H
#define COMMODEL_CONTENTS_H

#include "harness.h"

typedef struct {
  MPI_Datatype type;
  int rank, ranks;
  size_t block;  /* elements of one block, or of a vector */
  size_t first;  /* index of the first element of the sum that this rank receives */
  bool sums;     /* vectors; else blocks */
  bool to_each;  /* every rank gets a different block */
  bool from_all; /* the root, or every rank, receives a block from each */
} Contents;

size_t count_elements(MPI_Datatype type, size_t bytes);
void fill_contents(const Contents *c, char *sent, size_t bytes);
size_t find_first_error(const Contents *c, const char *received, size_t bytes); /* index of the element; their number: none is wrong */

#endif
