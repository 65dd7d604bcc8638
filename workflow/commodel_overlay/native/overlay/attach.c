/* attach.c: a process connects to its parent and identifies itself. */
#include "errors.h"
#include "network.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const double patience = 10; /* seconds to connect */

static int connect_to(const char *host, const char *port, double seconds)
{
  struct timeval limit = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(host, port, &hints, &list), fd = -1, reason = 0;
  if (code != 0) return overlay_fail("cannot find the parent at %s port %s: %s", host, port, gai_strerror(code));
  for (const struct addrinfo *address = list; address && fd < 0; address = address->ai_next) {
    fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect(), too */
    if (fd < 0 || connect(fd, address->ai_addr, address->ai_addrlen) == 0) continue;
    reason = errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  return fd >= 0 ? fd : overlay_fail("cannot connect to the parent at %s port %s: %s", host, port, strerror(reason));
}

static int read_token(const char *text, unsigned char token[static TOKEN_BYTES])
{
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < TOKEN_BYTES; i++) {
    const char *high = text[2 * i] ? strchr(digits, text[2 * i]) : NULL,
               *low = high && text[2 * i + 1] ? strchr(digits, text[2 * i + 1]) : NULL;
    if (!low) return OVERLAY_FAILED;
    token[i] = (unsigned char)((high - digits) << 4 | (low - digits));
  }
  return text[2 * TOKEN_BYTES] ? OVERLAY_FAILED : OVERLAY_OK;
}

/* For tests of clock skew: the seconds that this process's clock is to be ahead, from a list by node. */
static void read_clock(OverlayNetwork *network)
{
  const char *list = getenv("OVERLAY_CLOCKS");
  for (uint32_t node = 0; list && node < network->node; node++) {
    list = strchr(list, ',');
    list += list != NULL;
  }
  if (list) network->clock_ahead = strtod(list, NULL);
}

static bool receive_nonce(int socket, double seconds, unsigned char nonce[static NONCE_BYTES])
{
  struct timeval limit = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
  struct timeval none = {.tv_sec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ssize_t count = recv(socket, nonce, NONCE_BYTES, MSG_WAITALL);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
  return count == NONCE_BYTES;
}

int attach_to(OverlayNetwork *network, const char *address, double seconds)
{
  char host[MAX_ADDRESS], port[8];
  int end = 0;
  if (sscanf(address, "%299s %7[0-9]%n", host, port, &end) != 2 || address[end])
    return overlay_fail("found an address to attach to that is none, wanted HOST PORT");
  int socket = connect_to(host, port, seconds);
  if (socket < 0) return OVERLAY_FAILED;
  unsigned char nonce[NONCE_BYTES];
  if (network->authenticates && !receive_nonce(socket, seconds, nonce)) {
    close(socket);
    return overlay_fail("the parent at %s port %s sends no random number", host, port);
  }
  Hello hello = hello_of(network->token, network->node, network->authenticates ? nonce : NULL);
  if (network->authenticates && !(network->parent.peer.authentic = hello_keys(&hello, network->token, nonce, false))) {
    close(socket);
    return overlay_fail("no memory for the keys of a connection");
  }
  if (send(socket, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) {
    close(socket);
    peer_close(&network->parent.peer);
    return overlay_fail("cannot send to the parent at %s port %s: %s", host, port, strerror(errno));
  }
  network_open_peer(&network->parent, socket);
  return OVERLAY_OK;
}

int attach_by(OverlayNetwork *network, const char *attach)
{
  char host[MAX_ADDRESS], port[8], token[2 * TOKEN_BYTES + 2], address[MAX_ADDRESS + 16];
  int end = 0;
  if (sscanf(attach, "%299s %7[0-9] %9u %65s%n", host, port, &network->node, token, &end) != 4 ||
      (attach[end] && strcmp(attach + end, " tags") != 0) || read_token(token, network->token) != OVERLAY_OK)
    return overlay_fail("found an address to attach to that is none, wanted HOST PORT NODE TOKEN");
  network->authenticates = attach[end];
  snprintf(address, sizeof address, "%s %s", host, port);
  network->lineage = calloc(2, sizeof *network->lineage);
  if (!network->lineage || !(network->lineage[0] = strdup(address))) return overlay_fail("no memory for an address");
  network->nlineage = network->ancestor = 1;
  read_clock(network);
  return attach_to(network, address, patience);
}
