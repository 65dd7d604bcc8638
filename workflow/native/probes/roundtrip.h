/* roundtrip.h: a message passes along ranks and one of the same size comes back: what pingpong, pairs and chain share.
 *
 * Every rank has a neighbour before it, which the message comes from, and one after it, to which it is passed on; the reply
 * goes in the opposite direction. MPI_PROC_NULL is no neighbour: where the message starts, where it turns, on ranks that idle.
 *
 * The player cannot play these: its calls do not block, and a round trip with them took 1.1 to 1.4 times as long between
 * two ranks in shared memory (0 B to 1 MiB), and 212.8 instead of 200.0 us on simulated Fast Ethernet (1 KiB).
 */
#ifndef COMMODEL_ROUNDTRIP_H
#define COMMODEL_ROUNDTRIP_H

#include "harness.h"

void *prepare_round_trip(int before, int after, const Field *bytes);
void pass_round_trip(void *state);
void cleanup_round_trip(void *state);

#endif
