/* contents.h: data of the library's collectives, and the check of received data. */
#ifndef COMMODEL_CONTENTS_H
#define COMMODEL_CONTENTS_H

#include "harness.h"

typedef struct {
  MPI_Datatype type;
  int rank, ranks;
  size_t block;  /* elements of one block, or of a vector */
  size_t first;  /* element of the sum that this rank receives */
  bool sums;     /* vectors; else blocks */
  bool to_each;  /* every rank gets a different block */
  bool from_all; /* and every rank receives one from each */
} Contents;

size_t elements(MPI_Datatype type, size_t bytes);
void fill_contents(const Contents *c, char *sent, size_t bytes);
size_t first_wrong(const Contents *c, const char *received, size_t bytes); /* element; as many as there are: none */

#endif
