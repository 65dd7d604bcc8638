/* datagrams.c: the UDP sockets of the probe flood. Ranks on rank 0's host reach it over the loopback interface, the others by its
 * host name. */
#include "datagrams.h"

#if !COMMODEL_SIMULATED

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <linux/sock_diag.h>
#endif
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };
static const struct timeval max_send_time = {.tv_usec = 100000};

typedef struct sockaddr_in Address;

static int open_socket(void)
{
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) DIE("no UDP socket: %s", strerror(errno));
  return fd;
}

/* Any free port, on the loopback interface if all senders are local. */
static int open_receiver(bool is_local, in_port_t *port)
{
  Address address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY)};
  socklen_t length = sizeof address;
  int fd = open_socket();
  if (bind(fd, (struct sockaddr *)&address, length) != 0) DIE("cannot bind a UDP socket: %s", strerror(errno));
  if (getsockname(fd, (struct sockaddr *)&address, &length) != 0) DIE("UDP socket has no port: %s", strerror(errno));
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) DIE("cannot set O_NONBLOCK of a UDP socket: %s", strerror(errno));
#ifdef SO_TIMESTAMPNS
  int enabled = 1; /* if the system refuses, arrivals have no times */
  (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &enabled, sizeof enabled);
#endif
  *port = address.sin_port;
  return fd;
}

static Address find_host(const char *host)
{
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *entry;
  int code = getaddrinfo(host, NULL, &hints, &entry);
  if (code != 0) DIE("no IPv4 address of rank 0's host %s: %s", host, gai_strerror(code));
  Address address;
  memcpy(&address, entry->ai_addr, sizeof address);
  freeaddrinfo(entry);
  return address;
}

static int open_sender(const char *host, bool is_local, in_port_t port)
{
  Address address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (!is_local) address = find_host(host);
  address.sin_port = port;
  int fd = open_socket();
  if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &max_send_time, sizeof max_send_time) != 0)
    DIE("cannot set SO_SNDTIMEO of a UDP socket: %s", strerror(errno));
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    DIE("UDP socket cannot be connected to %s: %s", host, strerror(errno));
  return fd;
}

int open_datagrams(int rank)
{
  char own_host[NAME_BYTES] = "", host[NAME_BYTES];
  if (gethostname(own_host, sizeof own_host - 1) != 0) DIE("this host has no name: %s", strerror(errno));
  memcpy(host, own_host, sizeof host);
  MPI_TRY(MPI_Bcast(host, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD));
  int is_local = strcmp(host, own_host) == 0, all_local, fd = -1;
  MPI_TRY(MPI_Allreduce(&is_local, &all_local, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  in_port_t port = 0;
  if (rank == 0) fd = open_receiver(all_local, &port);
  MPI_TRY(MPI_Bcast(&port, sizeof port, MPI_BYTE, 0, MPI_COMM_WORLD));
  return rank == 0 ? fd : open_sender(host, is_local, port);
}

/* If the system has no buffers, or reports an error of an earlier packet, the packet counts as lost. */
static bool is_loss(int code)
{
  return code == ENOBUFS || code == ENOMEM || code == EINTR || code == ECONNREFUSED || code == EHOSTUNREACH ||
         code == ENETUNREACH;
}

void send_datagrams(int fd, char *buffer, size_t bytes, int packets, uint64_t sample, int sender)
{
  memcpy(buffer, &sample, sizeof sample);
  for (int i = 0; i < packets; i++) {
    if (bytes >= DATAGRAM_MIN_NUMBERED) memcpy(buffer + sizeof sample, (int[]){sender, i}, 2 * sizeof(int));
    if (send(fd, buffer, bytes, 0) >= 0 || is_loss(errno)) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return; /* this host cannot send: the rest is lost as well */
    DIE("cannot send a datagram of %zu bytes: %s", bytes, strerror(errno));
  }
}

bool receive_datagram(int fd, char *buffer, size_t bytes, uint64_t sample)
{
  ssize_t received = recv(fd, buffer, bytes, 0);
  if (received < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    DIE("cannot receive datagrams: %s", strerror(errno));
  return received == (ssize_t)bytes && memcmp(buffer, &sample, sizeof sample) == 0;
}

static double arrival_time(struct msghdr *message)
{
#ifdef SO_TIMESTAMPNS
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SO_TIMESTAMPNS) continue;
    struct timespec time;
    memcpy(&time, CMSG_DATA(part), sizeof time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
  }
#endif
  return -1;
}

bool receive_numbered(int fd, char *buffer, size_t bytes, uint64_t sample, int senders, Arrival *arrival)
{
  char control[256];
  struct iovec data = {.iov_base = buffer, .iov_len = bytes};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t received = recvmsg(fd, &message, 0);
  if (received < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    DIE("cannot receive datagrams: %s", strerror(errno));
  if (received != (ssize_t)bytes || memcmp(buffer, &sample, sizeof sample) != 0) return false;
  int numbers[2];
  memcpy(numbers, buffer + sizeof sample, sizeof numbers);
  *arrival = (Arrival){.at = arrival_time(&message), .sender = numbers[0], .index = numbers[1]};
  return numbers[0] >= 0 && numbers[0] < senders;
}

#ifdef SO_MEMINFO

/* The counter of SO_RXQ_OVFL, which arrives with datagrams, read without waiting for a datagram. */
static int64_t count_socket_drops(int fd)
{
  uint32_t control[SK_MEMINFO_VARS];
  socklen_t length = sizeof control;
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, control, &length) != 0) return -1;
  return length > SK_MEMINFO_DROPS * sizeof control[0] ? control[SK_MEMINFO_DROPS] : -1;
}

#else

static int64_t count_socket_drops(int fd)
{
  (void)fd;
  return -1;
}

#endif

/* Datagrams dropped by all sockets of this host. Of the two lines "Udp:", the first has names, the second numbers. */
static int64_t count_host_drops(void)
{
  char names[1024], numbers[1024];
  int64_t dropped = -1;
  FILE *file = fopen("/proc/net/snmp", "r");
  if (!file) return -1;
  while (dropped < 0 && fgets(names, sizeof names, file)) {
    if (strncmp(names, "Udp: ", 5) != 0 || !fgets(numbers, sizeof numbers, file)) continue;
    char *next_name, *next_number, *name = strtok_r(names, " \n", &next_name);
    char *number = strtok_r(numbers, " \n", &next_number);
    for (; name && number; name = strtok_r(NULL, " \n", &next_name), number = strtok_r(NULL, " \n", &next_number))
      if (strcmp(name, "RcvbufErrors") == 0) dropped = (int64_t)(uint32_t)strtoull(number, NULL, 10);
  }
  fclose(file);
  return dropped;
}

int64_t count_dropped_datagrams(int fd)
{
  int64_t dropped = count_socket_drops(fd);
  return dropped >= 0 ? dropped : count_host_drops();
}

int receive_buffer_bytes(int fd)
{
  int bytes;
  socklen_t length = sizeof bytes;
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) != 0) DIE("UDP socket has no receive buffer size: %s", strerror(errno));
  return bytes;
}

bool await_datagram(int fd, int milliseconds)
{
  struct pollfd events = {.fd = fd, .events = POLLIN};
  int ready = poll(&events, 1, milliseconds);
  if (ready < 0 && errno != EINTR) DIE("cannot wait for datagrams: %s", strerror(errno));
  return ready > 0;
}

#endif
