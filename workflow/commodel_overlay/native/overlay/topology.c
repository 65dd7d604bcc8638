/* topology.c: the tree itself: depth-first numbers, sizes and ranges of leaves, and slices of it. */
#include "topology.h"
#include "errors.h"

#include <stdlib.h>
#include <string.h>

void topology_free(Topology *tree)
{
  if (!tree) return;
  for (int node = 0; tree->name && node < tree->nodes; node++) free(tree->name[node]);
  free(tree->parent), free(tree->size), free(tree->first), free(tree->width), free(tree->name);
  free(tree);
}

Topology *topology_build(const int32_t *parent, const char *const *name, uint32_t nodes)
{
  if (nodes < 1 || nodes > TOPOLOGY_MAX_NODES)
    return overlay_fail("found %u nodes, wanted 1 to %d", nodes, TOPOLOGY_MAX_NODES), NULL;
  Topology *tree = calloc(1, sizeof *tree);
  if (!tree) return overlay_fail("no memory for a topology"), NULL;
  tree->nodes = (int)nodes;
  tree->parent = calloc(nodes, sizeof *tree->parent);
  tree->size = calloc(nodes, sizeof *tree->size);
  tree->first = calloc(nodes, sizeof *tree->first);
  tree->width = calloc(nodes, sizeof *tree->width);
  tree->name = calloc(nodes, sizeof *tree->name);
  if (!tree->parent || !tree->size || !tree->first || !tree->width || !tree->name) {
    overlay_fail("no memory for a topology of %u nodes", nodes);
    goto bad;
  }
  for (int node = 0; node < tree->nodes; node++) {
    /* Depth first: a node's parent is the node before it or one of that one's ancestors. */
    int above = node - 1;
    while (above > 0 && above != parent[node]) above = tree->parent[above];
    if (node == 0 ? parent[0] != -1 : above != parent[node]) {
      overlay_fail("node %d has the parent %d, which is not in depth-first order", node, parent[node]);
      goto bad;
    }
    if (strnlen(name[node], TOPOLOGY_MAX_NAME + 1) > TOPOLOGY_MAX_NAME) {
      overlay_fail("the name of node %d is longer than %d bytes", node, TOPOLOGY_MAX_NAME);
      goto bad;
    }
    tree->parent[node] = parent[node];
    if (!(tree->name[node] = strdup(name[node]))) {
      overlay_fail("no memory for the names of %u nodes", nodes);
      goto bad;
    }
  }
  for (int node = tree->nodes - 1; node >= 0; node--) {
    if (++tree->size[node] == 1) tree->width[node] = 1;
    if (node == 0) break;
    tree->size[parent[node]] += tree->size[node];
    tree->width[parent[node]] += tree->width[node];
  }
  for (int node = 0; node < tree->nodes; node++) {
    tree->first[node] = tree->leaves;
    tree->leaves += tree->size[node] == 1;
  }
  return tree;
bad:
  topology_free(tree);
  return NULL;
}

int topology_is_leaf(const Topology *tree, int node) { return tree->size[node] == 1; }

int topology_children(const Topology *tree, int node, int *children)
{
  int count = 0;
  for (int child = node + 1; child < node + tree->size[node]; child += tree->size[child]) {
    if (children) children[count] = child;
    count++;
  }
  return count;
}

int topology_leaf_node(const Topology *tree, int leaf)
{
  int low = 0, high = tree->nodes - 1; /* the last node whose sub-tree starts at or before it is the leaf itself */
  while (low < high) {
    int middle = low + (high - low + 1) / 2;
    if (tree->first[middle] <= leaf)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void topology_host(const char *name, char host[static TOPOLOGY_MAX_NAME + 1])
{
  const char *colon = strrchr(name, ':');
  size_t length = colon ? (size_t)(colon - name) : strlen(name);
  if (length > TOPOLOGY_MAX_NAME) length = TOPOLOGY_MAX_NAME;
  memcpy(host, name, length);
  host[length] = '\0';
}
