/* end.c: a sub-tree ends: children get SHUTDOWN, are waited for and, if they do not end in time, killed. */
#include "errors.h"
#include "network.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* Seconds that children have; those above wait longer than those below, who kill what is below them. What has started
 * one on another host is asked first, and has time to end it there: killed outright, it would leave it behind. */
static const double patience = 3.5, patience_per_level = 0.5, farewell = 5;

void on_shutdown(Neighbour *from, OverlayPacket *packet)
{
  (void)packet;
  if (from->network->state < ENDING) from->network->state = from->network->role == BACK_END ? ENDED : ENDING;
}

static int height(const Topology *tree)
{
  int highest = 0;
  for (int node = 1, depth; node < tree->nodes; node++) {
    if (!topology_is_leaf(tree, node)) continue;
    depth = 0;
    for (int above = node; above; above = tree->parent[above]) depth++;
    if (depth > highest) highest = depth;
  }
  return highest;
}

static bool reaped(pid_t *process, int options)
{
  if (*process <= 0) return true;
  if (waitpid(*process, NULL, options) == 0) return false;
  *process = 0;
  return true;
}

static bool any_connected(const OverlayNetwork *network)
{
  for (int i = 0; i < network->nchildren; i++)
    if (peer_is_up(&network->children[i]->peer)) return true;
  return false;
}

/* Waits for the children's own processes, which end a moment after their sockets, and from `end` on sees to it. */
static void end_processes(OverlayNetwork *network, double end)
{
  int urge = network->settings.launch ? SIGTERM : SIGKILL, first = urge;
  for (long pause = 100000;; pause = pause < 20000000 ? 2 * pause : pause) {
    int left = 0;
    bool over = now() > end;
    for (int i = -1; i < network->nchildren; i++) {
      pid_t *process = i < 0 ? &network->step : &network->children[i]->process;
      if (reaped(process, WNOHANG)) continue;
      left++;
      if (!over) continue;
      if (urge == first)
        log_line("%s does not end: killed", i < 0 ? "the step" : network->tree->name[network->children[i]->node]);
      kill(*process, urge);
      if (urge == SIGKILL) reaped(process, 0);
    }
    if (!left || (over && urge == SIGKILL)) return;
    if (over) urge = SIGKILL, end = now() + farewell;
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
  }
}

void end_children(OverlayNetwork *network)
{
  if (!network->tree) return;
  double level = patience_per_level + (network->settings.launch ? farewell : 0);
  double end = now() + patience + level * (height(network->tree) - 1);
  network->state = network->state > ENDING ? network->state : ENDING;
  stop_listening(network);
  if (network->step > 0 && network->phases.backends <= 0) kill(network->step, SIGTERM);
  check_strangers(network); /* before: a process identified later would get WELCOME, but no SHUTDOWN */
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    if (!child->attached && child->process > 0) kill(child->process, SIGTERM);
    post_control(child, SHUTDOWN, 0, "");
  }
  while (any_connected(network) && now() < end)
    if (network_progress(network, end - now()) != OVERLAY_OK) break;
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    if (child->adopted > 0 && peer_is_up(&child->peer)) {
      log_line("%s does not end: killed", network->tree->name[child->node]);
      kill(child->adopted, SIGKILL);
    }
    peer_close(&child->peer);
  }
  end_processes(network, end + patience_per_level);
}
