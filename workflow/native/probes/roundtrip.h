/* roundtrip.h: a message passes along ranks and one of the same size comes back: what pingpong, pairs and chain share.
 *
 * Every rank has a neighbour before it, which the message comes from, and one after it, which it goes on to; the answer
 * goes the other way. MPI_PROC_NULL is no neighbour: where the message starts, where it turns, on ranks that idle.
 */
#ifndef COMMODEL_ROUNDTRIP_H
#define COMMODEL_ROUNDTRIP_H

#include "harness.h"

void *prepare_round_trip(int before, int after, const Field *bytes);
void pass_round_trip(void *state);
void cleanup_round_trip(void *state);

#endif
