/* skew.c: how far the clocks of back-ends are ahead of the front-end's.
 *
 * Along the tree, in two phases as in the paper: every process asks each of its children for its clock, many times, and
 * keeps what the fastest round trip said (the child's clock against the middle of it); then each sub-tree's root sends
 * up the skews of its back-ends, to which each process on the way adds the skew of the child they came from. End to
 * end, the paper's direct method: the front-end asks every back-end itself, through the processes between them. Either
 * way one is requested after the other, since an answer that waits for another one's is late.
 */
#include "skew.h"
#include "errors.h"
#include "streams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two numbers of a packet. */
typedef struct {
  double seconds, uncertainty; /* the other's clock was read somewhere in the round trip, at best in its middle */
} Clock;
static const Clock unknown = {NAN, NAN};

struct Skew {
  bool end_to_end;
  uint32_t rounds, round;
  int children;          /* that there were when it began */
  int count, subject;    /* number of measured processes (children or all back-ends), and the present one */
  double requested_at, fastest; /* time of the last request; seconds of the fastest round trip so far */
  Clock *ahead;          /* of each of them */
  Clock *backends;       /* of each back-end below, as children sent it */
  bool *child_is_done;            /* by child: it has sent them */
  bool asking, done;
};

void skew_free(OverlayNetwork *network)
{
  if (!network->skew) return;
  free(network->skew->ahead), free(network->skew->backends), free(network->skew->child_is_done);
  free(network->skew);
  network->skew = NULL;
}

/* Both phases are done here: add them up and send them on. */
static void finish(OverlayNetwork *network)
{
  Skew *skew = network->skew;
  if (skew->asking || skew->done) return;
  for (int i = 0; i < skew->children; i++)
    if (!skew->child_is_done[i]) return;
  if (skew->end_to_end) memcpy(skew->backends, skew->ahead, (size_t)skew->count * sizeof *skew->backends);
  for (int leaf = 0; leaf < network->tree->leaves && !skew->end_to_end; leaf++) {
    int child = network->owner[leaf];
    Clock own = child >= skew->children || network->children[child]->gone ? unknown : skew->ahead[child];
    skew->backends[leaf].seconds += own.seconds, skew->backends[leaf].uncertainty += own.uncertainty;
  }
  skew->done = true;
  if (network->role == INTERNAL)
    post_control(&network->parent, SKEWS, 0, "%alf", skew->backends, 2 * (uint32_t)network->tree->leaves);
}

/* The child behind which a back-end is. */
static Neighbour *child_towards(OverlayNetwork *network, int backend)
{
  return network->children[network->owner[backend - (int)network->first]];
}

static Neighbour *towards(OverlayNetwork *network, int subject)
{
  return network->skew->end_to_end ? child_towards(network, subject) : network->children[subject];
}

/* The stream of a probe is the number of the back-end that answers, counted from 1; 0: the receiver answers. */
static void request_next(OverlayNetwork *network)
{
  Skew *skew = network->skew;
  for (;; skew->subject++, skew->round = 0, skew->fastest = INFINITY) {
    if (skew->subject == skew->count) {
      skew->asking = false;
      return finish(network);
    }
    bool lost = towards(network, skew->subject)->gone || (skew->end_to_end && network->lost[skew->subject]);
    if (lost) skew->ahead[skew->subject] = unknown;
    if (!lost && skew->round < skew->rounds) break;
  }
  Neighbour *child = towards(network, skew->subject);
  post_control(child, PROBE, skew->end_to_end ? (uint32_t)skew->subject + 1 : 0, "%ud", skew->round);
  skew->requested_at = network_clock(network);
  peer_flush(&child->peer);
}

static int skew_begin(OverlayNetwork *network, uint32_t rounds, bool end_to_end)
{
  skew_free(network);
  Skew *skew = network->skew = calloc(1, sizeof *skew);
  size_t children = (size_t)network->nchildren;
  if (!skew) return overlay_fail("no memory for clocks");
  *skew = (Skew){
      .rounds = rounds, .fastest = INFINITY, .asking = true, .end_to_end = end_to_end, .children = network->nchildren};
  skew->count = end_to_end ? (int)network->backends : network->nchildren;
  skew->ahead = calloc((size_t)skew->count, sizeof *skew->ahead);
  skew->backends = calloc((size_t)network->tree->leaves, sizeof *skew->backends);
  skew->child_is_done = calloc(children, sizeof *skew->child_is_done);
  if (!skew->ahead || !skew->backends || !skew->child_is_done) {
    skew_free(network);
    return overlay_fail("no memory for clocks of %zu children", children);
  }
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    skew->child_is_done[i] = end_to_end || !child->is_internal || child->gone; /* back-ends have none below */
    if (!skew->child_is_done[i]) post_control(child, SKEW, 0, "%ud", rounds);
  }
  request_next(network);
  return OVERLAY_OK;
}

void on_skew(Neighbour *from, OverlayPacket *packet)
{
  uint32_t rounds;
  if (from->network->role != INTERNAL || !from->network->tree || overlay_unpack(packet, "%ud", &rounds) != OVERLAY_OK)
    return;
  if (skew_begin(from->network, rounds, false) != OVERLAY_OK) peer_lose(&from->peer, overlay_error());
}

void on_probe(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  uint32_t round, to = packet->frame->stream;
  if (network->role == INTERNAL && to) {
    if (!network->tree || to <= network->first || to > network->first + (uint32_t)network->tree->leaves) return;
    Neighbour *child = child_towards(network, (int)to - 1);
    post(child, overlay_keep(packet));
    return peer_flush(&child->peer);
  }
  if (overlay_unpack(packet, "%ud", &round) != OVERLAY_OK) return;
  post_control(from, ECHO, to, "%ud %lf", round, network_clock(network));
  peer_flush(&from->peer);
}

void on_echo(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  Skew *skew = network->skew;
  uint32_t round, by = packet->frame->stream;
  double clock, answered = network_clock(network);
  if (network->role == INTERNAL && by) {
    post(&network->parent, overlay_keep(packet));
    return peer_flush(&network->parent.peer);
  }
  if (!skew || !skew->asking || overlay_unpack(packet, "%ud %lf", &round, &clock) != OVERLAY_OK || round != skew->round)
    return;
  if (skew->end_to_end ? by != (uint32_t)skew->subject + 1 : by || from->index != skew->subject) return;
  if (answered - skew->requested_at < skew->fastest) {
    skew->fastest = answered - skew->requested_at;
    skew->ahead[skew->subject] = (Clock){clock - (skew->requested_at + answered) / 2, skew->fastest / 2};
  }
  skew->round++;
  request_next(network);
}

void on_skews(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  Skew *skew = network->skew;
  const double *seconds;
  uint32_t count;
  if (!skew || from->index >= skew->children || skew->child_is_done[from->index] ||
      overlay_unpack(packet, "%alf", &seconds, &count) != OVERLAY_OK || count != 2 * (uint32_t)from->width)
    return;
  memcpy(skew->backends + (from->first - (int)network->first), seconds, count * sizeof *seconds);
  skew->child_is_done[from->index] = true;
  finish(network);
}

/* Of a back-end, or of the whole sub-tree of a child. */
void skew_remove_child(OverlayNetwork *network, const Neighbour *lost)
{
  Skew *skew = network->skew;
  if (!skew || skew->done) return;
  if (lost && lost->index < skew->children) skew->child_is_done[lost->index] = true;
  bool requested =
      skew->asking && (towards(network, skew->subject)->gone || (skew->end_to_end && network->lost[skew->subject]));
  if (requested)
    request_next(network);
  else
    finish(network);
}

static int skew_locked(OverlayNetwork *network, int how, int rounds, double *seconds, double *uncertainty)
{
  if (network->role != FRONT_END || network->state != RUNNING || rounds < 1)
    return overlay_fail("clocks are compared by the front-end, once all back-ends are there, in at least one round");
  if (skew_begin(network, (uint32_t)rounds, how == OVERLAY_END_TO_END) != OVERLAY_OK) return OVERLAY_FAILED;
  while (!network->skew->done)
    if (network_progress(network, -1) != OVERLAY_OK) return OVERLAY_FAILED;
  for (uint32_t i = 0; i < network->backends; i++) {
    seconds[i] = network->skew->backends[i].seconds;
    if (uncertainty) uncertainty[i] = network->skew->backends[i].uncertainty;
  }
  return OVERLAY_OK;
}

int overlay_skew(OverlayNetwork *network, int how, int rounds, double *seconds, double *uncertainty)
{
  enter(network);
  int result = skew_locked(network, how, rounds, seconds, uncertainty);
  leave(network);
  return result;
}
