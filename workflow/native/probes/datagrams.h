/* datagrams.h: packets over UDP, each of which may be lost; for flood only, on real machines only. */
#ifndef COMMODEL_DATAGRAMS_H
#define COMMODEL_DATAGRAMS_H

#include "arrivals.h"
#include "harness.h"

/* A datagram begins with the number of its sample; if it has room, its sender and its index follow. */
enum { DATAGRAM_LEAST = sizeof(uint64_t), DATAGRAM_NUMBERED = 16, DATAGRAM_MOST = 65507 }; /* 64 KiB less IP's and UDP's */

/* Collective. Rank 0 gets a socket that receives without waiting, every other one that is connected to it. */
int open_datagrams(int rank);

/* Fills `buffer` and sends it, each packet once. A packet that the system refuses for lack of memory counts as lost. */
void send_datagrams(int fd, char *buffer, size_t bytes, int packets, uint64_t sample, int sender);

/* True if a datagram of this sample has arrived; false if none, or one of another sample or sender. */
bool receive_datagram(int fd, char *buffer, size_t bytes, uint64_t sample);

/* The same, from one of senders 0..senders-1, with the system's time of the arrival; only for datagrams of DATAGRAM_NUMBERED bytes or more. */
bool receive_numbered(int fd, char *buffer, size_t bytes, uint64_t sample, int senders, Arrival *arrival);

/* The number of datagrams that the receiver's own socket has dropped for lack of memory: the network has delivered them.
 * Modulo 2^32; -1 if the system does not report it. */
int64_t dropped_datagrams(int fd);

/* Bytes that the receiver's socket holds, the system's own included. */
int datagram_room(int fd);

/* Sleeps until a datagram arrives; false after the time limit. */
bool await_datagram(int fd, int milliseconds);

#endif
