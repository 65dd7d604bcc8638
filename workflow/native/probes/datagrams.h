/* datagrams.h: packets over UDP, each of which may be lost; for flood only, on real machines only. */
#ifndef COMMODEL_DATAGRAMS_H
#define COMMODEL_DATAGRAMS_H

#include "harness.h"

enum { DATAGRAM_LEAST = sizeof(uint64_t), DATAGRAM_MOST = 65507 }; /* a sample's number; 64 KiB less IP's and UDP's */

/* Collective. Rank 0 gets a socket that receives without waiting, every other one that is connected to it. */
int open_datagrams(int rank);

/* Fills `buffer` and sends it, each packet once. One that the system refuses for want of room is as good as lost. */
void send_datagrams(int fd, char *buffer, size_t bytes, int packets, uint64_t sample);

/* True when one of this sample has come; false when there is none, or one of another sample or from somebody else. */
bool receive_datagram(int fd, char *buffer, size_t bytes, uint64_t sample);

/* How many datagrams the receiver's own socket has thrown away so far, for want of room: they have come through the
 * network. Modulo 2^32; -1 where the system does not tell. */
int64_t dropped_datagrams(int fd);

/* Bytes that the receiver's socket holds, the system's own included. */
int datagram_room(int fd);

/* Sleeps until something has come; false when nothing has for that long. */
bool await_datagram(int fd, int milliseconds);

#endif
