/* datagrams.h: packets over UDP, which may be lost; for flood on real machines. */
#ifndef COMMODEL_DATAGRAMS_H
#define COMMODEL_DATAGRAMS_H

#include "arrivals.h"
#include "harness.h"

/* A datagram begins with the number of its sample. If it is long enough, its sender and its index follow. */
enum { DATAGRAM_MIN = sizeof(uint64_t), DATAGRAM_MIN_NUMBERED = 16, DATAGRAM_MAX = 65507 }; /* bytes; the most is 65535 minus the headers of IP and UDP */

/* Collective. Rank 0 gets a non-blocking socket that receives, every other rank a socket that is connected to it. */
int open_datagrams(int rank);

/* Fills `buffer` and sends it, each packet once. A packet that the system refuses for lack of memory counts as lost. */
void send_datagrams(int fd, char *buffer, size_t bytes, int packets, uint64_t sample, int sender);

/* True if a datagram of this sample has arrived; false if none, or one of another sample or size. */
bool receive_datagram(int fd, char *buffer, size_t bytes, uint64_t sample);

/* The same, from one of senders 0..senders-1, with the system's time of the arrival; only for datagrams of DATAGRAM_MIN_NUMBERED bytes or more. */
bool receive_numbered(int fd, char *buffer, size_t bytes, uint64_t sample, int senders, Arrival *arrival);

/* The number of datagrams that the network has delivered, but the receiver's socket has dropped for lack of memory,
 * modulo 2^32. If the system does not count by socket, those of all sockets of the host; -1 if it counts neither. */
int64_t count_dropped_datagrams(int fd);

/* Size in bytes of the receive buffer of the socket, including the system's overhead. */
int receive_buffer_bytes(int fd);

/* Sleeps until a datagram arrives; false after the time limit. */
bool await_datagram(int fd, int milliseconds);

#endif
