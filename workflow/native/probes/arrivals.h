/* arrivals.h: estimates the capacity of a network queue from the arrival times of a flood, without MPI. */
#ifndef COMMODEL_ARRIVALS_H
#define COMMODEL_ARRIVALS_H

/* A received packet: its arrival time, its sender, and its index among the sender's packets, from 0. */
typedef struct {
  double at;
  int sender, index;
} Arrival;

/* The capacity in packets of a drop-tail queue before the receiver; -1 if the arrivals do not determine it. `arrivals`
 * are in the order of arrival; senders are numbered from 0, and each has sent `packets` packets. */
double estimate_queue_packets(const Arrival *arrivals, int count, int senders, int packets);

#endif
