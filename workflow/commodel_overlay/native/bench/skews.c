/* skews.c: measurement of the skews of all back-ends' clocks, which are set 10 ms ahead or behind for this purpose.
 *
 *   tree, direct              its time: along the tree, or from the front-end to each back-end
 *   tree-error, direct-error  mean error over back-ends
 */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100, DIGITS = 16 };
static const double shift = 10e-3;
static const char *const modes[] = {"tree", "direct", "tree-error", "direct-error", NULL};

typedef struct {
  OverlayNetwork *network;
  double *shifts, *skews; /* by back-end: set skews, and measured skews */
  int method;
  bool error;
} Skews;

/* Internal processes have other skews, which have to cancel out along the tree. */
static void prepare(Measured *m)
{
  const Topology *tree = m->net->tree;
  const char *mode = m->c->fields[MODE].text;
  Skews *own = m->own = allocate(1, sizeof *own);
  own->method = strncmp(mode, "tree", 4) == 0 ? OVERLAY_ALONG_TREE : OVERLAY_END_TO_END;
  own->error = strstr(mode, "error") != NULL;
  own->shifts = allocate((size_t)tree->leaves, sizeof *own->shifts);
  own->skews = allocate((size_t)tree->leaves, sizeof *own->skews);
  char *list = allocate((size_t)tree->nodes, DIGITS), *end = list;
  for (int node = 0; node < tree->nodes; node++) {
    bool leaf = topology_is_leaf(tree, node);
    double seconds = leaf ? (tree->first[node] % 2 ? shift : -shift) : node * 37 % 40 * 1e-3;
    if (leaf) own->shifts[tree->first[node]] = seconds;
    end += sprintf(end, "%s%.3f", node ? "," : "", node ? seconds : 0.0);
  }
  if (setenv("OVERLAY_CLOCKS", list, 1) != 0) DIE("no room in the environment");
  own->network = start_net(m->net);
  unsetenv("OVERLAY_CLOCKS");
  free(list);
}

static void sample(Measured *m, Samples *samples, int first, int n)
{
  Skews *own = m->own;
  int leaves = m->net->tree->leaves;
  for (int k = first; k < first + n; k++) {
    double start = clock_now(), error_seconds = 0;
    TRY(overlay_skew(own->network, own->method, ROUNDS, own->skews, NULL));
    double duration = clock_now() - start;
    for (int leaf = 0; leaf < leaves; leaf++) error_seconds += fabs(own->skews[leaf] - own->shifts[leaf]) / leaves;
    samples->seconds[k] = own->error ? error_seconds : duration;
    samples->valid[k] = true;
    samples->skew[k] = NAN;
  }
}

static void cleanup(Measured *m)
{
  Skews *own = m->own;
  overlay_close(own->network);
  free(own->shifts);
  free(own->skews);
  free(own);
}

const Operation skew = {.name = "skew", .modes = modes, .local_only = true, .with = WITH_SKEW, .prepare = prepare, .sample = sample,
                        .cleanup = cleanup};
