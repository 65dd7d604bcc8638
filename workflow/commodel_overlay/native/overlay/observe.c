/* observe.c: what can be seen of a network while it runs: counts and times of each process and stream, gathered over the
 * network itself; events; and the tree as it is now. */
#include "errors.h"
#include "streams.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { MAX_EVENTS = 1024, ALL_STREAMS = -1 };

/* ---- counts ---- */
static const char row_format[] = "%ud %d %auld %alf";

static double own_cpu(void)
{
  struct rusage own;
  if (getrusage(RUSAGE_SELF, &own) != 0) return 0;
  return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) + 1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
}

/* Seconds, as the kernel has smoothed them; 0 where there is no parent. */
static double round_trip(const OverlayNetwork *network)
{
  struct tcp_info info;
  socklen_t size = sizeof info;
  if (!peer_is_up(&network->parent.peer)) return 0;
  if (getsockopt(network->parent.peer.watch.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_rtt * 1e-6;
}

static uint64_t queued_in(const OverlayStream *stream)
{
  uint64_t count = stream->up.queue.count + stream->out.count;
  for (int i = 0; i < stream->nlinks; i++) count += stream->links[i].queue.count;
  return count;
}

void add_counts(Counts *sum, const Counts *more)
{
  for (int i = 0; i < COUNTS; i++) sum->of[i] += more->of[i];
  sum->filter_seconds += more->filter_seconds;
}

static void keep_row(OverlayNetwork *network, const OverlayMetrics *row)
{
  OverlayMetrics *rows = realloc(network->rows, ((size_t)network->nrows + 1) * sizeof *rows);
  if (!rows) return;
  network->rows = rows;
  rows[network->nrows++] = *row;
}

static OverlayMetrics row_of(uint32_t node, int stream, const uint64_t *counts, const double *seconds)
{
  return (OverlayMetrics){.node = (int)node,
                          .stream = stream,
                          .packets_up = counts[PACKETS_UP],
                          .packets_down = counts[PACKETS_DOWN],
                          .bytes_up = counts[BYTES_UP],
                          .bytes_down = counts[BYTES_DOWN],
                          .waves = counts[WAVES],
                          .queued = counts[COUNTS],
                          .filter_seconds = seconds[0],
                          .cpu_seconds = seconds[1],
                          .round_trip = seconds[2]};
}

static void give_row(OverlayNetwork *network, int stream, const Counts *counts, uint64_t queued, const double *more)
{
  uint64_t numbers[COUNTS + 1];
  double seconds[] = {counts->filter_seconds, more[0], more[1]};
  memcpy(numbers, counts->of, sizeof counts->of);
  numbers[COUNTS] = queued;
  OverlayMetrics row = row_of(network->node, stream, numbers, seconds);
  if (network->role == FRONT_END) return keep_row(network, &row);
  post_control(&network->parent, COUNTED, 0, row_format, network->node, stream, numbers, (uint32_t)COUNTS + 1, seconds, 3u);
}

static void give_rows(OverlayNetwork *network)
{
  double process[] = {own_cpu(), round_trip(network)}, none[] = {0, 0};
  Counts all = network->counts;
  uint64_t queued = 0;
  for (int bucket = 0; bucket < 64; bucket++)
    for (OverlayStream *stream = network->streams[bucket]; stream; stream = stream->next) {
      add_counts(&all, &stream->counts);
      queued += queued_in(stream);
      if (!stream->ended) give_row(network, (int)stream->id, &stream->counts, queued_in(stream), none);
    }
  give_row(network, ALL_STREAMS, &all, queued, process);
}

/* Done once all children are. */
void gather_on(OverlayNetwork *network)
{
  if (!network->gathering) return;
  for (int i = 0; i < network->nchildren; i++)
    if (network->children[i]->counts_requested && !network->children[i]->gone) return;
  network->gathering = false;
  if (network->role != FRONT_END) post_control(&network->parent, COUNTED_ALL, 0, "");
}

static void gather(OverlayNetwork *network)
{
  network->gathering = true;
  give_rows(network);
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    if (!(child->counts_requested = peer_is_up(&child->peer) && !child->rejoining)) continue;
    post_control(child, COUNT, 0, "");
  }
  gather_on(network);
}

void on_count(Neighbour *from, OverlayPacket *packet)
{
  (void)packet;
  if (from->network->state == RUNNING) gather(from->network);
}

void on_counted(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  uint32_t node, ncounts, nseconds;
  int32_t stream;
  const uint64_t *counts;
  const double *seconds;
  if (network->role == INTERNAL) return post(&network->parent, overlay_keep(packet));
  if (!network->gathering || overlay_unpack(packet, row_format, &node, &stream, &counts, &ncounts, &seconds, &nseconds) ||
      ncounts != COUNTS + 1 || nseconds != 3 || node >= (uint32_t)network->tree->nodes)
    return;
  OverlayMetrics row = row_of(node, stream, counts, seconds);
  keep_row(network, &row);
}

void on_counted_all(Neighbour *from, OverlayPacket *packet)
{
  (void)packet;
  from->counts_requested = false;
  gather_on(from->network);
}

static int by_node(const void *one, const void *other)
{
  const OverlayMetrics *a = one, *b = other;
  return a->node != b->node ? a->node - b->node : (a->stream > b->stream) - (a->stream < b->stream);
}

static int metrics_locked(OverlayNetwork *network, double seconds, const OverlayMetrics **rows)
{
  double end = now() + seconds;
  *rows = NULL;
  if (network->role != FRONT_END || network->state != RUNNING)
    return overlay_fail("the front-end gathers metrics, once all back-ends are there");
  network->nrows = 0;
  gather(network);
  while (network->gathering && network->state == RUNNING && (seconds < 0 || now() < end))
    if (network_progress(network, seconds < 0 ? -1 : end - now()) != OVERLAY_OK) return OVERLAY_FAILED;
  network->gathering = false;
  if (network->nrows) qsort(network->rows, (size_t)network->nrows, sizeof *network->rows, by_node);
  *rows = network->rows;
  return network->nrows;
}

int overlay_metrics(OverlayNetwork *network, double seconds, const OverlayMetrics **rows)
{
  enter(network);
  int result = metrics_locked(network, seconds, rows);
  leave(network);
  return result;
}

/* ---- events ---- */
void note_event(OverlayNetwork *network, OverlayEvent event, const char *why)
{
  if (network->role != FRONT_END || network->state != RUNNING) return;
  snprintf(event.why, sizeof event.why, "%s", why);
  if (network->on_event) network->on_event(network->event_context, &event);
  if (!network->events && !(network->events = calloc(MAX_EVENTS, sizeof *network->events))) return;
  network->events[network->nevents++ % MAX_EVENTS] = event;
  if (network->nevents - network->taken_events > MAX_EVENTS) network->taken_events++; /* the oldest makes room */
}

static int event_locked(OverlayNetwork *network, OverlayEvent *event)
{
  if (network->taken_events == network->nevents) return 0;
  *event = network->events[network->taken_events++ % MAX_EVENTS];
  return 1;
}

int overlay_event(OverlayNetwork *network, OverlayEvent *event)
{
  enter(network);
  int result = event_locked(network, event);
  leave(network);
  return result;
}

void overlay_on_event(OverlayNetwork *network, void (*call)(void *context, const OverlayEvent *event), void *context)
{
  network->on_event = call, network->event_context = context;
}

/* ---- the tree ---- */

/* A process has attached to an ancestor: those that were between are lost. */
void note_parent(OverlayNetwork *network, int node, int parent)
{
  if (!network->parent_now) return;
  for (int above = network->parent_now[node]; above > 0 && above != parent;) {
    int next = network->parent_now[above];
    network->parent_now[above] = OVERLAY_GONE;
    above = next;
  }
  network->parent_now[node] = parent;
}

int overlay_nodes(const OverlayNetwork *network) { return network->role == FRONT_END ? network->tree->nodes : 0; }

static int node_locked(const OverlayNetwork *network, int node, OverlayNode *node_info)
{
  const Topology *tree = network->tree;
  if (node < 0 || node >= overlay_nodes(network)) return overlay_fail("found no process %d in the tree", node);
  bool leaf = topology_is_leaf(tree, node);
  *node_info = (OverlayNode){.name = tree->name[node], .backend = leaf ? tree->first[node] : -1};
  node_info->parent = leaf && network->lost[tree->first[node]] ? OVERLAY_GONE : network->parent_now[node];
  for (int above = node_info->parent; above >= 0; above = network->parent_now[above]) node_info->depth++;
  for (int other = 1; other < tree->nodes; other++)
    node_info->children += network->parent_now[other] == node &&
                       !(topology_is_leaf(tree, other) && network->lost[tree->first[other]]);
  return OVERLAY_OK;
}

int overlay_node(const OverlayNetwork *network, int node, OverlayNode *node_info)
{
  enter(network);
  int result = node_locked(network, node, node_info);
  leave(network);
  return result;
}
