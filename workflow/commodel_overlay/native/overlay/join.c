/* join.c: new connections: children with the token are accepted; others are refused, with one log line. */
#include "errors.h"
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MORE_STRANGERS = 64 };
static const double patience = 10; /* seconds for a hello */

struct Stranger {
  Watch watch; /* first: a Stranger is a Watch */
  OverlayNetwork *network;
  Stranger *next;
  Hello hello;
  unsigned char nonce[NONCE_BYTES]; /* that it was sent, where packets are to have tags */
  size_t have;
  double since;
  char from[MAX_ADDRESS];
};

static void refuse(Stranger *stranger, const char *why)
{
  log_line("refused a connection from %s: %s", stranger->from, why);
  loop_close(&stranger->network->loop, &stranger->watch);
}

static Neighbour *child_of_node(OverlayNetwork *network, uint32_t node)
{
  int low = 0, high = network->nstarted - 1;
  int64_t wanted = (int64_t)node - network->node;
  while (low <= high) {
    int middle = low + (high - low) / 2;
    if (network->children[middle]->node == wanted) return network->children[middle];
    if (network->children[middle]->node < wanted)
      low = middle + 1;
    else
      high = middle - 1;
  }
  return NULL;
}

/* A process that one command has started with all others asks the front-end where its parent is. True: it was told, or
 * waits until that is known. */
static bool guide(Stranger *stranger)
{
  OverlayNetwork *network = stranger->network;
  uint32_t node = hello_number(&stranger->hello, stranger->hello.node);
  if (!network->settings.one_step || network->role != FRONT_END || network->state != STARTING || !node ||
      node >= (uint32_t)network->tree->nodes || !network->tree->parent[node])
    return false;
  const char *address = network->addresses[network->tree->parent[node]];
  if (!address) return true;
  OverlayPacket *packet = overlay_pack(0, "%ud %s", node, address);
  unsigned char tag[TAG_BYTES];
  Authentic *keys =
      network->authenticates ? hello_keys(&stranger->hello, network->token, stranger->nonce, true) : NULL;
  if (!packet || (network->authenticates && !keys)) return refuse(stranger, "no memory for its keys"), true;
  packet->frame->kind = ADDRESS;
  if (keys) tag_of(&keys->send_key, 0, packet->frame, packet->frame->bytes, tag);
  struct iovec pieces[] = {{packet->frame, packet->frame->bytes}, {tag, keys ? TAG_BYTES : 0}};
  ssize_t sent = writev(stranger->watch.fd, pieces, 2);
  if (sent == (ssize_t)(pieces[0].iov_len + pieces[1].iov_len))
    loop_close(&network->loop, &stranger->watch);
  else
    refuse(stranger, "it cannot be sent its parent's address");
  free(keys);
  overlay_release(packet);
  return true;
}

void send_parent_addresses(OverlayNetwork *network)
{
  for (Stranger *stranger = network->strangers; stranger; stranger = stranger->next)
    if (stranger->watch.fd >= 0 && stranger->have == sizeof stranger->hello) guide(stranger);
}

static void hear(Watch *watch, uint32_t events)
{
  Stranger *stranger = (Stranger *)watch;
  (void)events;
  ssize_t count =
      recv(watch->fd, (char *)&stranger->hello + stranger->have, sizeof stranger->hello - stranger->have, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return refuse(stranger, "it left before it said who it is");
  if ((stranger->have += (size_t)count) < sizeof stranger->hello) return;
  OverlayNetwork *network = stranger->network;
  const unsigned char *nonce = network->authenticates ? stranger->nonce : NULL;
  const char *why = hello_refused(&stranger->hello, network->token, nonce);
  if (!why && guide(stranger)) return;
  uint32_t node = hello_number(&stranger->hello, stranger->hello.node);
  Neighbour *child = child_of_node(network, node);
  bool taken = child && child->attached && !(network->settings.join && child->gone && !child->is_internal);
  if (!why && (child ? taken : adoption_of(network, node) == REFUSE)) why = "no such process is expected";
  if (why) return refuse(stranger, why);
  Authentic *authentic = nonce ? hello_keys(&stranger->hello, network->token, nonce, true) : NULL;
  if (nonce && !authentic) return refuse(stranger, "no memory for its keys");
  int socket = loop_forget(&network->loop, watch);
  if (!child) return adopt(network, node, hello_number(&stranger->hello, stranger->hello.process), socket, authentic);
  child->peer.authentic = authentic;
  child_attached(child, socket);
}

/* How many may be there at once: in one step all processes come to the front-end. */
static int most_expected(const OverlayNetwork *network)
{
  return MORE_STRANGERS + (network->settings.one_step ? network->tree->nodes : network->nchildren);
}

/* Silent connections must not block others: the oldest of too many is closed. A child sends as soon as it connects. */
static void make_way(OverlayNetwork *network)
{
  Stranger *oldest = NULL;
  int waiting = 0;
  for (Stranger *stranger = network->strangers; stranger; stranger = stranger->next)
    if (stranger->watch.fd >= 0) waiting++, oldest = stranger;
  if (waiting >= most_expected(network)) refuse(oldest, "it said nothing, and others wait");
}

static void welcome(Watch *listener, uint32_t events)
{
  OverlayNetwork *network = (OverlayNetwork *)((char *)listener - offsetof(OverlayNetwork, listener));
  (void)events;
  for (int turn = 0; turn < MORE_STRANGERS; turn++) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int socket = accept4(listener->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    make_way(network);
    Stranger *stranger = calloc(1, sizeof *stranger);
    if (!stranger) {
      log_line("refused a connection: no memory");
      close(socket);
      continue;
    }
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(stranger->from, sizeof stranger->from, "%.200s port %.20s", host, port);
    stranger->watch = (Watch){.fd = socket, .ready = hear};
    stranger->network = network, stranger->since = now(), stranger->next = network->strangers;
    network->strangers = stranger;
    if (network->authenticates && (nonce_new(stranger->nonce) != OVERLAY_OK ||
                                   send(socket, stranger->nonce, NONCE_BYTES, MSG_NOSIGNAL) != NONCE_BYTES)) {
      refuse(stranger, "it cannot be sent a random number");
      continue;
    }
    if (loop_watch(&network->loop, &stranger->watch, EPOLLIN) != OVERLAY_OK) refuse(stranger, overlay_error());
  }
}

/* Not while events are handed out, which may still name one of them. */
void check_strangers(OverlayNetwork *network)
{
  double time = now();
  for (Stranger **at = &network->strangers; *at;) {
    Stranger *stranger = *at;
    bool waits = stranger->have == sizeof stranger->hello && network->state == STARTING;
    if (stranger->watch.fd >= 0 && ((time - stranger->since > patience && !waits) || network->listener.fd < 0))
      refuse(stranger, network->listener.fd < 0 ? "nobody is expected any more" : "it said nothing");
    if (stranger->watch.fd >= 0) {
      at = &stranger->next;
    } else {
      *at = stranger->next;
      free(stranger);
    }
  }
}

void strangers_free(OverlayNetwork *network)
{
  for (Stranger *next; network->strangers; network->strangers = next) {
    next = network->strangers->next;
    loop_close(&network->loop, &network->strangers->watch);
    free(network->strangers);
  }
}

void stop_listening(OverlayNetwork *network) { loop_close(&network->loop, &network->listener); }

/* Where children find this process: on the address that was named, or the first that its host's name has, one that
 * others can reach if there is one. */
static int bind_to(const struct addrinfo *list)
{
  int reason = EADDRNOTAVAIL;
  for (int loopback = 0; loopback < 2; loopback++)
    for (const struct addrinfo *address = list; address; address = address->ai_next) {
      const struct sockaddr_in *in = (const struct sockaddr_in *)address->ai_addr;
      int is_loopback = address->ai_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == 127;
      if (is_loopback != loopback) continue;
      int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0) return fd;
      reason = errno;
      if (fd >= 0) close(fd);
    }
  errno = reason;
  return -1;
}

/* An address of the connection to the parent: the parent's by getpeername, this process's own by getsockname. */
static void parents_address(const OverlayNetwork *network, int (*side)(int, struct sockaddr *, socklen_t *),
                            char host[static NI_MAXHOST])
{
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  if (side(network->parent.peer.watch.fd, (struct sockaddr *)&address, &size) != 0 ||
      getnameinfo((struct sockaddr *)&address, size, host, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) != 0)
    snprintf(host, NI_MAXHOST, "127.0.0.1");
}

/* What was named for the front-end, or this machine alone; the host of the topology where processes are on hosts; and
 * in internal processes of one machine what their parent listens on, or their own address if one command starts all. */
static void listening_host(const OverlayNetwork *network, char host[static NI_MAXHOST])
{
  snprintf(host, NI_MAXHOST, "%s", network->host[0] ? network->host : "127.0.0.1");
  if (network->settings.launch && !network->host[0])
    topology_host(network->tree->name[0], host);
  else if (network->role == INTERNAL)
    parents_address(network, network->settings.one_step ? getsockname : getpeername, host);
}

/* A batch system may know a host by a name that the network does not: then it is what the host calls itself, and below
 * the front-end the address that has reached the parent. */
static void unnamed_host(const OverlayNetwork *network, char host[static NI_MAXHOST])
{
  if (network->role == INTERNAL)
    parents_address(network, getsockname, host);
  else
    gethostname(host, NI_MAXHOST - 1);
}

int listen_for_children(OverlayNetwork *network)
{
  char host[NI_MAXHOST], port[NI_MAXSERV];
  listening_host(network, host);
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(host, NULL, &hints, &list);
  if (code != 0 && network->settings.launch) {
    unnamed_host(network, host);
    code = getaddrinfo(host, NULL, &hints, &list);
  }
  if (code != 0) return overlay_fail("cannot listen on '%s': %s", host, gai_strerror(code));
  int fd = bind_to(list);
  freeaddrinfo(list);
  if (fd < 0) return overlay_fail("cannot listen on '%s': %s", host, strerror(errno));
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  network->listener = (Watch){.fd = fd, .ready = welcome};
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
      getnameinfo((struct sockaddr *)&address, size, network->host, sizeof network->host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return overlay_fail("cannot listen on '%s': %s", host, strerror(errno));
  network->port = atoi(port);
  if (strcmp(network->host, "0.0.0.0") == 0 || strcmp(network->host, "::") == 0 ||
      strcmp(network->host, "::ffff:0.0.0.0") == 0)
    return overlay_fail("found '%s', which is every address of this machine, wanted one", host);
  if (listen(fd, most_expected(network)) != 0)
    return overlay_fail("cannot listen on '%s': %s", host, strerror(errno));
  return loop_watch(&network->loop, &network->listener, EPOLLIN);
}
