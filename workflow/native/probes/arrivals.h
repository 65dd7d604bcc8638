/* arrivals.h: what the arrival times of a flood show about the queue that its packets passed. Free of MPI. */
#ifndef COMMODEL_ARRIVALS_H
#define COMMODEL_ARRIVALS_H

/* A packet that a receiver got: when, and the how-manieth of which sender it is, from 0. */
typedef struct {
  double at;
  int sender, index;
} Arrival;

/* Packets that a full drop-tail queue before the receiver holds; -1 if the arrivals do not show it. `arrivals` are in the
 * order of arrival; senders are numbered from 0, and each has sent so many `packets`. */
double packets_held(const Arrival *arrivals, int count, int senders, int packets);

#endif
