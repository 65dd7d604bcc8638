/* topology.h: trees of hosts from text, without a socket.
 *
 * Nodes are numbered in depth-first order, children in the order of the text: so a sub-tree is one slice of nodes, and
 * its leaves, which are numbered in the same order, are one range.
 */
#ifndef OVERLAY_TOPOLOGY_H
#define OVERLAY_TOPOLOGY_H

#include <stdint.h>

enum { TOPOLOGY_MAX_NODES = 1 << 18, TOPOLOGY_MAX_NAME = 255 };

typedef struct {
  int nodes, leaves;
  int *parent; /* of each node; -1 of the root, which is node 0 */
  int *size;   /* nodes of the sub-tree under each, itself too */
  int *first;  /* number of the first leaf of each sub-tree */
  int *width;  /* how many leaves it has; a leaf has 1, itself */
  char **name; /* host:number, or the label of a table */
} Topology;

/* `from` names the text in errors, which have the line. NULL with overlay_error() if it is no tree. */
Topology *topology_parse(const char *text, const char *from);
Topology *topology_read(const char *path);
/* Of a tree in depth-first order, as a parent hands it to its child; both arrays are copied. */
Topology *topology_build(const int32_t *parent, const char *const *name, uint32_t nodes);
void topology_free(Topology *tree);

int topology_is_leaf(const Topology *tree, int node);
int topology_children(const Topology *tree, int node, int *children); /* counts them; lists them unless NULL */
int topology_leaf_node(const Topology *tree, int leaf);
void topology_host(const char *name, char host[static TOPOLOGY_MAX_NAME + 1]); /* the part before the last colon */

#endif
