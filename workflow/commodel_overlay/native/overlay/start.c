/* start.c: a sub-tree comes up: its root listens, starts its children all at once, hands each its part, and reports. */
#include "errors.h"
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const double patience = 10; /* seconds to connect to a parent */

void start_failed(OverlayNetwork *network, const char *why)
{
  if (network->failure[0]) return; /* the first reason is the reason */
  snprintf(network->failure, sizeof network->failure, "%s", why);
  if (network->role == INTERNAL) post_control(&network->parent, FAILED, 0, "%s", why);
}

void on_failed(Neighbour *from, OverlayPacket *packet)
{
  const char *why;
  if (overlay_unpack(packet, "%s", &why) == OVERLAY_OK) start_failed(from->network, why);
}

static void send_address(OverlayNetwork *network)
{
  char address[MAX_ADDRESS + 16];
  snprintf(address, sizeof address, "%s %d", network->host, network->port);
  post_control(&network->parent, ADDRESS, 0, "%ud %s", network->node, address);
}

int start_children(OverlayNetwork *network)
{
  if (listen_for_children(network) != OVERLAY_OK) return OVERLAY_FAILED;
  bool one_step = network->settings.one_step;
  if (one_step && network->role == INTERNAL) send_address(network);
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    if (one_step || (!child->is_internal && !network->settings.backend)) continue; /* others start it */
    if (start_child(child) != OVERLAY_OK) return OVERLAY_FAILED;
  }
  network->phases.launch = now() - network->started;
  report_start_progress(network);
  return OVERLAY_OK;
}

/* ---- packets to a child ---- */
static uint32_t count_lines(char **lines)
{
  uint32_t count = 0;
  while (lines && lines[count]) count++;
  return count;
}

static void send_config(Neighbour *child)
{
  const OverlayNetwork *network = child->network;
  const Topology *tree = network->tree;
  const Settings *settings = &network->settings;
  uint32_t nodes = (uint32_t)tree->size[child->node];
  int32_t *parent = calloc(nodes, sizeof *parent);
  if (!parent) return peer_lose(&child->peer, "no memory for its part of the topology");
  for (uint32_t i = 0; i < nodes; i++) parent[i] = i ? tree->parent[(uint32_t)child->node + i] - child->node : -1;
  char **backend = settings->one_step ? NULL : settings->backend, **launch = settings->one_step ? NULL : settings->launch;
  post_control(child, CONFIG, 0, "%ud %ud %ud %d %ad %as %as %as %s %s %lf %ud %d %d %as",
               network->node + (uint32_t)child->node, (uint32_t)child->first, network->backends,
               network->role == INTERNAL, parent, nodes, tree->name + child->node, nodes, backend, count_lines(backend),
               launch, count_lines(launch), settings->program, settings->folder, settings->silence_seconds, settings->window,
               settings->join, settings->one_step, network->lineage, (uint32_t)network->nlineage);
  free(parent);
}

/* It takes part in streams that are opened from now on. */
static void join_in(Neighbour *child)
{
  OverlayNetwork *network = child->network;
  child->gone = false;
  network->owner[child->first - (int)network->first] = child->index;
  network->lost[child->first - (int)network->first] = false;
  report_attached(network, child, -1);
}

void child_attached(Neighbour *child, int socket)
{
  const OverlayNetwork *network = child->network;
  network_open_peer(child, socket);
  if (child->is_internal) {
    send_config(child);
  } else {
    post_control(child, WELCOME, 0, "%ud %ud %d %lf %ud %as", (uint32_t)child->first, network->backends,
                 network->role == INTERNAL, network->settings.silence_seconds, network->settings.window, network->lineage,
                 (uint32_t)network->nlineage);
    child->ready = true;
    if (network->settings.join) join_in(child);
    report_start_progress(child->network);
  }
}

static char **copy_lines(const char *const *lines, uint32_t count)
{
  char **copies = calloc(count + 1, sizeof *copies);
  for (uint32_t i = 0; copies && i < count; i++)
    if (!(copies[i] = strdup(lines[i]))) {
      while (i--) free(copies[i]);
      free(copies);
      return NULL;
    }
  return copies;
}

/* Values from the parent are checked, since they are used in sums and for timers. */
static bool is_sound(const OverlayNetwork *network)
{
  const Settings *settings = &network->settings;
  return network->node < TOPOLOGY_MAX_NODES && network->backends <= TOPOLOGY_MAX_NODES &&
         network->first < network->backends && settings->silence_seconds >= 1 && settings->silence_seconds <= 1e6 &&
         settings->window > 0;
}

void on_config(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  Settings *settings = &network->settings;
  const int32_t *parent;
  const char *const *name, *const *backend, *const *launch, *const *ancestors, *program, *folder;
  uint32_t parents, names, backend_words, launch_words, nancestors;
  int32_t is_internal;
  if (network->tree || network->settings.program || network->role != INTERNAL)
    return peer_lose(&from->peer, "it sent a second configuration");
  if (overlay_unpack(packet, "%ud %ud %ud %d %ad %as %as %as %s %s %lf %ud %d %d %as", &network->node, &network->first,
                     &network->backends, &is_internal, &parent, &parents, &name, &names, &backend, &backend_words, &launch,
                     &launch_words, &program, &folder, &settings->silence_seconds, &settings->window, &settings->join,
                     &settings->one_step, &ancestors, &nancestors) != OVERLAY_OK ||
      parents != names || !is_sound(network))
    return start_failed(network, "a configuration that is none");
  from->is_internal = is_internal;
  settings->program = strdup(program), settings->folder = strdup(folder);
  if (backend_words) settings->backend = copy_lines(backend, backend_words);
  if (launch_words) settings->launch = copy_lines(launch, launch_words);
  if (take_lineage(network, ancestors, nancestors) != OVERLAY_OK || !settings->program || !settings->folder ||
      (backend_words && !settings->backend) || (launch_words && !settings->launch))
    return start_failed(network, "no memory for a configuration");
  network->tree = topology_build(parent, name, parents);
  if (network->tree && (uint32_t)network->tree->leaves > network->backends - network->first)
    return start_failed(network, "a configuration of more back-ends than there are");
  if (!network->tree || network_children(network) != OVERLAY_OK || start_children(network) != OVERLAY_OK)
    start_failed(network, overlay_error());
}

void on_welcome(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  int32_t is_internal;
  const char *const *ancestors;
  uint32_t nancestors;
  if (network->state != STARTING || network->role != BACK_END)
    return peer_lose(&from->peer, "it sent a second welcome");
  if (overlay_unpack(packet, "%ud %ud %d %lf %ud %as", &network->first, &network->backends, &is_internal,
                     &network->settings.silence_seconds, &network->settings.window, &ancestors, &nancestors) != OVERLAY_OK)
    return;
  if (!is_sound(network) || take_lineage(network, ancestors, nancestors) != OVERLAY_OK) return peer_lose(&from->peer, "it sent a welcome that is none");
  from->is_internal = is_internal;
  network->state = RUNNING;
}

/* ---- packets to a parent ---- */
void report_start_progress(OverlayNetwork *network)
{
  bool tree_up = true, ready = true;
  for (int i = 0; i < network->nchildren; i++) {
    tree_up = tree_up && network->children[i]->tree_up;
    ready = ready && (network->children[i]->ready || (network->settings.join && !network->children[i]->is_internal));
  }
  if (network->state != STARTING) return;
  if (tree_up && network->phases.tree <= 0) {
    network->phases.tree = now() - network->started;
    if (network->role == INTERNAL) {
      bool attaching = false;
      for (int i = 0; i < network->nchildren; i++)
        attaching = attaching || (!network->children[i]->is_internal && !network->settings.backend);
      if (attaching && !network->settings.one_step) send_address(network);
      post_control(&network->parent, TREE_UP, 0, "");
    }
  }
  if (!tree_up || !ready) return;
  network->phases.backends = now() - network->started;
  network->state = RUNNING;
  bool grandchildren = false; /* which may attach here later */
  for (int i = 0; i < network->nchildren; i++) grandchildren = grandchildren || network->children[i]->is_internal;
  if (!grandchildren && !network->settings.join) stop_listening(network);
  if (!network->settings.join) remove_connection_file(network);
  if (network->role == INTERNAL) post_control(&network->parent, READY, 0, "");
}

/* Moves the connection from the front-end, which sent the parent's address, to the parent. */
static void be_guided(OverlayNetwork *network, const char *address)
{
  peer_close(&network->parent.peer);
  free(network->lineage[0]);
  network->lineage[0] = strdup(address);
  if (network->lineage[0] && attach_to(network, address, patience) == OVERLAY_OK) return;
  start_failed(network, overlay_error());
  network->state = ENDED;
}

void on_address(Neighbour *from, OverlayPacket *packet)
{
  OverlayNetwork *network = from->network;
  const char *address;
  uint32_t node;
  if (overlay_unpack(packet, "%ud %s", &node, &address) != OVERLAY_OK) return;
  if (from->index < 0) {
    if (network->state != STARTING || network->tree || !network->nlineage) return peer_lose(&from->peer, "it sent a second parent's address");
    return be_guided(network, address);
  }
  if (network->role == INTERNAL) return post(&network->parent, overlay_keep(packet));
  if (!network->addresses || node >= (uint32_t)network->tree->nodes) return;
  free(network->addresses[node]);
  network->addresses[node] = strdup(address);
  send_parent_addresses(network);
}

void on_tree_up(Neighbour *from, OverlayPacket *packet)
{
  (void)packet;
  from->tree_up = true;
  report_start_progress(from->network);
}

void on_ready(Neighbour *from, OverlayPacket *packet)
{
  (void)packet;
  from->tree_up = from->ready = true;
  report_start_progress(from->network);
}

/* A child's process that has ended will not attach; but what launches one on another host may end well before. */
void check_failed_starts(OverlayNetwork *network)
{
  int code;
  if (network->step > 0 && waitpid(network->step, &code, WNOHANG) == network->step) {
    network->step = 0;
    if (code) start_failed(network, "the command that starts all processes failed before they had attached");
  }
  for (int i = 0; i < network->nchildren; i++) {
    Neighbour *child = network->children[i];
    int status;
    if (child->attached || child->process <= 0 || waitpid(child->process, &status, WNOHANG) != child->process) continue;
    child->process = 0;
    if (network->settings.launch && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    char why[400];
    snprintf(why, sizeof why, "%s of %s ended %s %d before it attached",
             child->is_internal ? "the internal process" : "the back-end", network->tree->name[child->node],
             WIFEXITED(status) ? "with code" : "by signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    start_failed(network, why);
  }
}
