/* network.c: trees of processes: read with their cases, started for the first case that needs one, and then reused. */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, QUERIES = 3 };
static const double answer_timeout = 60; /* seconds for an answer */

Net read_net(const Case *c, const char *file, char *const *launch)
{
  Net net = {.file = file, .launch = launch, .tree = topology_read(file)};
  if (!net.tree) case_error(c, "topology", file, overlay_error());
  if (net.tree->nodes < 2) case_error(c, "topology", file, "a tree with back-ends");
  return net;
}

OverlayNetwork *start_net(const Net *net)
{
  static char self[] = "/proc/self/exe";
  char *path = realpath(self, NULL);
  if (!path) DIE("cannot find this program");
  char *back_end[] = {path, "--back-end", NULL};
  OverlayOptions options = {.topology = net->file, .backend = back_end, .launch = net->launch};
  OverlayNetwork *network = overlay_start(&options);
  if (!network) DIE("%s: %s", net->file, overlay_error());
  free(path);
  return network;
}

void receive_packet(OverlayStream *stream, OverlayPacket **packet)
{
  if (overlay_recv(stream, answer_timeout, packet) != OVERLAY_OK) DIE("no answer: %s", overlay_error());
}

/* A filter that forwards packets does not wait for all children, which may send different numbers of packets. */
OverlayStream *open_stream(const Net *net, const char *filter)
{
  int sync = strcmp(filter, "none") == 0 ? OVERLAY_DO_NOT_WAIT : OVERLAY_WAIT_FOR_ALL;
  OverlayStreamOptions options = {.filter = filter, .sync = sync, .on_loss = OVERLAY_STOP};
  OverlayStream *stream = overlay_open(overlay_broadcast(net->network), &options);
  if (!stream) DIE("%s", overlay_error());
  return stream;
}

/* A network that ended before a back-end joins would look to it as if it had never started. */
void wait_for_back_ends(const Net *net)
{
  OverlayStream *stream = open_stream(net, "max");
  OverlayPacket *packet;
  TRY(overlay_send(stream, BEGAN, ""));
  receive_packet(stream, &packet);
  overlay_release(packet);
}

double net_usage(Net *net)
{
  OverlayPacket *packet;
  double seconds;
  TRY(overlay_send(net->usage, USAGE, ""));
  receive_packet(net->usage, &packet);
  TRY(overlay_unpack(packet, "%lf", &seconds));
  overlay_release(packet);
  return seconds;
}

/* Checks that each back-end is on the host that the tree names; numerical addresses are not checked. */
static void check_hosts(const Net *net)
{
  OverlayStream *stream = open_stream(net, "none");
  TRY(overlay_send(stream, NAME, ""));
  for (int received = 0; received < net->tree->leaves; received++) {
    OverlayPacket *packet;
    const char *host;
    char wanted[TOPOLOGY_MAX_NAME + 1];
    receive_packet(stream, &packet);
    TRY(overlay_unpack(packet, "%s", &host));
    topology_host(overlay_backend_name(net->network, overlay_source(packet)), wanted);
    bool named = strpbrk(wanted, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;
    if (named && !same_host(wanted, host))
      user_error("%s: back-end %d should be on %s, but is on %s", net->file, overlay_source(packet), wanted, host);
    overlay_release(packet);
  }
  overlay_close_stream(stream);
}

void start_net_once(Net *net)
{
  if (net->network) return;
  net->network = start_net(net);
  net->bookkeeping = open_stream(net, "max");
  net->usage = open_stream(net, "usage");
  net->skews = allocate((size_t)net->tree->leaves, sizeof *net->skews);
  if (net->launch) check_hosts(net);
  net->query = 0;
  for (int i = 0; i < QUERIES; i++) { /* the first warms up */
    double before = net_usage(net), between = net_usage(net) - before;
    if (i == 1 || (i > 1 && between < net->query)) net->query = between;
  }
}

void stop_net(Net *net)
{
  if (!net->network) return;
  overlay_close(net->network);
  net->network = NULL;
  free(net->skews);
}

void free_net(Net *net)
{
  stop_net(net);
  topology_free(net->tree);
}

void align_net(Net *net)
{
  size_t leaves = (size_t)net->tree->leaves;
  double *uncertainty = allocate(leaves, sizeof *uncertainty);
  if (net->launch) TRY(overlay_skew(net->network, OVERLAY_END_TO_END, ROUNDS, net->skews, uncertainty));
  net->synced = clock_now();
  net->uncertainty = 0;
  for (size_t i = 0; i < leaves; i++) net->uncertainty = fmax(net->uncertainty, uncertainty[i]);
  free(uncertainty);
}

bool exceeds_uncertainty(const Net *net, double seconds) { return seconds >= net->uncertainty; }

double net_clock(const Net *net) { return read_clock(net->launch ? REAL : MONOTONIC); }
