/* roundtrip.h: a message along a chain of ranks, and a reply of the same size: common code of pingpong, pairs and chain.
 *
 * Every rank receives the message from the neighbour before it, and forwards it to the one after it. The reply takes the
 * opposite direction. MPI_PROC_NULL: no neighbour, at the ends of the chain and on idle ranks.
 *
 * The player cannot measure these, since its calls are non-blocking. A round trip with it took 1.1 to 1.4 times as long
 * between two ranks in shared memory (0 B to 1 MiB), and 212.8 instead of 200.0 us on simulated Fast Ethernet (1 KiB).
 */
#ifndef COMMODEL_ROUNDTRIP_H
#define COMMODEL_ROUNDTRIP_H

#include "harness.h"

void *prepare_round_trip(int before, int after, const Field *bytes);
void pass_round_trip(void *state);
void cleanup_round_trip(void *state);

#endif
