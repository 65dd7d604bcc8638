/* frontend.c: networks and communicators, as their front-end has them. */
#include "errors.h"
#include "network.h"
#include "streams.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double start_seconds = 60;

static char **copy_command(char *const *command)
{
  size_t words = 0;
  while (command[words]) words++;
  char **copy = calloc(words + 1, sizeof *copy);
  for (size_t i = 0; copy && i < words; i++) copy[i] = strdup(command[i]);
  return copy;
}

/* The overlay-node beside this library, or beside the program that it is a part of; else the installed one. */
static char *find_node_program(void)
{
  Dl_info library;
  char library_path[4096];
  if (!dladdr(&start_seconds, &library) || !library.dli_fname || !realpath(library.dli_fname, library_path)) return NULL;
  char *slash = strrchr(library_path, '/');
  size_t room = slash ? (size_t)(slash - library_path) + sizeof "/overlay-node" : 0;
  char *path = room ? malloc(room) : NULL;
  if (path) snprintf(path, room, "%.*s/overlay-node", (int)(slash - library_path), library_path);
#ifdef OVERLAY_INSTALLED_NODE
  if (!path || access(path, X_OK) != 0) {
    free(path);
    path = strdup(OVERLAY_INSTALLED_NODE);
  }
#endif
  return path;
}

static int take_settings(OverlayNetwork *network, const OverlayOptions *options)
{
  Settings *settings = &network->settings;
  if (!options->topology == !options->topology_text) return overlay_fail("wanted a topology: a file or a text");
  settings->one_step = options->one_step != 0;
  if (options->one_step && (!options->connection_file || options->join || !options->backend != !options->launch))
    return overlay_fail("wanted, for one step, a connection file and no join; and both `launch` and `backend`, or none");
  if (!options->one_step && !options->backend == !options->connection_file)
    return overlay_fail("wanted the command of the back-ends, or a connection file for back-ends that others start");
  if ((options->backend && !options->backend[0]) || (options->launch && !options->launch[0]))
    return overlay_fail("found an empty command");
  if (options->silence > 1e6) return overlay_fail("found a silence of %g s, wanted at most 1e6", options->silence);
  if (options->silence > 0) settings->silence_seconds = options->silence < 1 ? 1 : options->silence;
  if (options->window) settings->window = options->window;
  settings->join = options->join != 0;
  network->authenticates = options->authenticate != 0;
  if (options->join && !options->connection_file)
    return overlay_fail("wanted a connection file for back-ends that are to join");
  settings->folder = getcwd(NULL, 0);
  settings->program = options->node_program ? strdup(options->node_program) : find_node_program();
  if (options->backend) settings->backend = copy_command(options->backend);
  if (options->launch) settings->launch = copy_command(options->launch);
  if (!settings->folder || !settings->program)
    return overlay_fail("cannot find out where overlay-node is, wanted node_program");
  if (access(settings->program, X_OK) != 0)
    return overlay_fail("found no program %s, wanted overlay-node", settings->program);
  if (options->bind) snprintf(network->host, sizeof network->host, "%s", options->bind);
  return token_new(network->token);
}

static int plant(OverlayNetwork *network, const OverlayOptions *options)
{
  network->tree =
      options->topology ? topology_read(options->topology) : topology_parse(options->topology_text, "topology");
  if (!network->tree) return OVERLAY_FAILED;
  if (network->tree->nodes < 2) return overlay_fail("found a topology of one node, wanted a root and back-ends");
  network->backends = (uint32_t)network->tree->leaves;
  network->addresses = calloc((size_t)network->tree->nodes, sizeof *network->addresses);
  network->parent_now = calloc((size_t)network->tree->nodes, sizeof *network->parent_now);
  if (!network->addresses || !network->parent_now)
    return overlay_fail("no memory for %u back-ends", network->backends);
  memcpy(network->parent_now, network->tree->parent, (size_t)network->tree->nodes * sizeof *network->parent_now);
  return network_children(network);
}

/* Turns until the internal processes, or all, are there. */
static int wait_for(OverlayNetwork *network, const double *phase, double seconds, const char *awaited)
{
  double end = now() + seconds;
  while (*phase <= 0) {
    if (network->failure[0]) return overlay_fail("start-up failed: %s", network->failure);
    if (seconds >= 0 && now() >= end) {
      int missing = 0, first = -1;
      for (int i = 0; i < network->nchildren; i++) {
        bool there = phase == &network->phases.tree ? network->children[i]->tree_up : network->children[i]->ready;
        if (!there && !missing++) first = network->children[i]->node;
      }
      overlay_fail("%s not up after %.0f s: no word of %d of %d sub-trees, %s the first", awaited, seconds, missing,
                   network->nchildren, first < 0 ? "none" : network->tree->name[first]);
      return OVERLAY_TIMEOUT;
    }
    if (network_progress(network, seconds < 0 ? -1 : end - now()) != OVERLAY_OK) return OVERLAY_FAILED;
  }
  return OVERLAY_OK;
}

OverlayNetwork *overlay_start(const OverlayOptions *options)
{
  OverlayNetwork *network = network_new(FRONT_END);
  double seconds = options->start_seconds > 0 ? options->start_seconds : start_seconds;
  if (!network) return NULL;
  int code = take_settings(network, options);
  if (code == OVERLAY_OK) code = plant(network, options);
  if (code == OVERLAY_OK && options->connection_file) unlink(options->connection_file); /* of one that was killed */
  if (code == OVERLAY_OK) code = start_children(network);
  if (code == OVERLAY_OK && options->one_step) code = write_connection_file(network, options->connection_file);
  if (code == OVERLAY_OK && options->one_step && options->launch) code = start_step(network, options->connection_file);
  if (code == OVERLAY_OK) code = wait_for(network, &network->phases.tree, seconds, "internal processes");
  if (code == OVERLAY_OK && options->connection_file && !options->one_step)
    code = write_connection_file(network, options->connection_file);
  if (code == OVERLAY_OK && options->backend) code = overlay_await(network, seconds);
  if (code == OVERLAY_OK) return network;
  char why[512];
  snprintf(why, sizeof why, "%s", overlay_error());
  overlay_close(network);
  overlay_fail("%s", why);
  return NULL;
}

static int await_locked(OverlayNetwork *network, double seconds)
{
  if (network->role != FRONT_END) return overlay_fail("only the front-end waits for back-ends");
  return wait_for(network, &network->phases.backends, seconds, "back-ends");
}

int overlay_await(OverlayNetwork *network, double seconds)
{
  enter(network);
  int result = await_locked(network, seconds);
  leave(network);
  return result;
}

static int lost_locked(const OverlayNetwork *network, int *backends, int max_count)
{
  int count = 0;
  for (uint32_t i = 0; network->lost && i < network->backends; i++) {
    if (!network->lost[i]) continue;
    if (count < max_count) backends[count] = (int)i;
    count++;
  }
  return count;
}

int overlay_lost(const OverlayNetwork *network, int *backends, int max_count)
{
  enter(network);
  int result = lost_locked(network, backends, max_count);
  leave(network);
  return result;
}

const char *overlay_backend_name(const OverlayNetwork *network, int backend)
{
  if (!network->tree || backend < 0 || backend >= network->tree->leaves)
    return overlay_fail("found no back-end %d", backend), NULL;
  return network->tree->name[topology_leaf_node(network->tree, backend)];
}

OverlayPhases overlay_phases(const OverlayNetwork *network) { return network->phases; }

/* ---- communicators ---- */
OverlayComm *overlay_broadcast(OverlayNetwork *network)
{
  if (network->role != FRONT_END) return overlay_fail("communicators belong to the front-end"), NULL;
  return &network->broadcast;
}

static int ascending(const void *one, const void *other)
{
  int a = *(const int *)one, b = *(const int *)other;
  return (a > b) - (a < b);
}

OverlayComm *overlay_subset(OverlayNetwork *network, const int *backends, int count)
{
  if (network->role != FRONT_END || count < 1)
    return overlay_fail("wanted at least one back-end, in the front-end"), NULL;
  OverlayComm *comm = calloc(1, sizeof *comm);
  int *sorted = malloc((size_t)count * sizeof *sorted);
  uint32_t *ranges = malloc((size_t)count * 2 * sizeof *ranges);
  int code =
      comm && sorted && ranges ? OVERLAY_OK : overlay_fail("no memory for a communicator of %d back-ends", count);
  if (code == OVERLAY_OK) {
    memcpy(sorted, backends, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    *comm = (OverlayComm){.network = network, .ranges = ranges, .size = (uint32_t)count};
  }
  for (int i = 0; code == OVERLAY_OK && i < count; i++) {
    uint32_t backend = (uint32_t)sorted[i], *last = comm->pairs ? &ranges[2 * (comm->pairs - 1)] : NULL;
    if (backend >= network->backends)
      code = overlay_fail("found the back-end %d, wanted 0 to %u", sorted[i], network->backends - 1);
    else if (i && sorted[i] == sorted[i - 1])
      code = overlay_fail("found the back-end %d twice", sorted[i]);
    else if (last && last[0] + last[1] == backend)
      last[1]++;
    else
      ranges[2 * comm->pairs] = backend, ranges[2 * comm->pairs++ + 1] = 1;
  }
  free(sorted);
  if (code == OVERLAY_OK) return comm;
  free(ranges), free(comm);
  return NULL;
}

int overlay_comm_size(const OverlayComm *comm) { return (int)comm->size; }

void overlay_free_comm(OverlayComm *comm)
{
  if (!comm || comm == &comm->network->broadcast) return;
  free(comm->ranges), free(comm);
}
