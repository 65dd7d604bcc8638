/* topologyfile.c: reads trees from text: MRNet's statements `host:0 => host:1 host:2 ;`, which may span lines, with `#`
 * comments; or a table `node,parent` with a line a node. What stands first says which. */
#include "errors.h"
#include "topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BYTES = 64 << 20 };
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

typedef struct {
  char *name;
  int line, parent_line, parent; /* parent -1: none yet */
  int first, last, next;         /* children, and the next child of the same parent: -1 ends the list */
  int bucket_next;
} Entry;

typedef struct {
  const char *from;
  Entry *entries;
  int count, room;
  int buckets[1 << 12];
} Graph;

static unsigned hash_of(const char *text, size_t length)
{
  return (unsigned)(overlay_checksum(text, length) & ((1 << 12) - 1));
}

/* The entry of this name, made if it is new; -1 where there is no memory or there are too many. */
static int entry_of(Graph *graph, const char *name, size_t length, int line)
{
  unsigned bucket = hash_of(name, length);
  for (int i = graph->buckets[bucket]; i >= 0; i = graph->entries[i].bucket_next)
    if (strncmp(graph->entries[i].name, name, length) == 0 && !graph->entries[i].name[length]) return i;
  if (graph->count == TOPOLOGY_MAX_NODES)
    return overlay_fail("%s:%d: found more than %d nodes", graph->from, line, TOPOLOGY_MAX_NODES);
  if (graph->count == graph->room) {
    int room = graph->room ? 2 * graph->room : 64;
    Entry *entries = realloc(graph->entries, (size_t)room * sizeof *entries);
    if (!entries) return overlay_fail("no memory for %d nodes", room);
    graph->entries = entries, graph->room = room;
  }
  char *copy = strndup(name, length);
  if (!copy) return overlay_fail("no memory for the name of a node");
  graph->entries[graph->count] = (Entry){.name = copy,
                                         .line = line,
                                         .parent = -1,
                                         .first = -1,
                                         .last = -1,
                                         .next = -1,
                                         .bucket_next = graph->buckets[bucket]};
  return graph->buckets[bucket] = graph->count++;
}

static int join(Graph *graph, int child, int parent, int line)
{
  Entry *entry = &graph->entries[child];
  if (entry->parent >= 0)
    return overlay_fail("%s:%d: '%s' has a second parent '%s', the first is '%s' on line %d", graph->from, line,
                        entry->name, graph->entries[parent].name, graph->entries[entry->parent].name,
                        entry->parent_line);
  entry->parent = parent, entry->parent_line = line;
  int *end = graph->entries[parent].last >= 0 ? &graph->entries[graph->entries[parent].last].next
                                              : &graph->entries[parent].first;
  *end = graph->entries[parent].last = child;
  return OVERLAY_OK;
}

static const char *word_end(const char *at)
{
  while (*at && !strchr(" \t\r\n;#", *at) && !(at[0] == '=' && at[1] == '>')) at++;
  return at;
}

/* host:number, where no program can take a host for an option of its own. */
static int is_node(const char *token, size_t length)
{
  size_t host = strcspn(token, ":");
  if (host == 0 || host >= length || length > TOPOLOGY_MAX_NAME || host + 1 == length) return 0;
  for (size_t i = 0; i < host; i++)
    if (!strchr(i ? "-._" : "_", token[i]) && !strchr(letters, token[i])) return 0;
  return strspn(token + host + 1, "0123456789") >= length - host - 1;
}

static int shown_length(const char *token, size_t length) { return (int)(length > 80 || !token ? 80 : length); }

static int read_statements(Graph *graph, const char *at)
{
  enum { PARENT, ARROW, CHILDREN } wanted = PARENT;
  int line = 1, parent = -1, children = 0;
  static const char *const expected[] = {"host:NUMBER", "=>", "host:NUMBER or ;"};
  while (*at) {
    if (*at == '\n') line++;
    if (strchr(" \t\r\n", *at)) {
      at++;
    } else if (*at == '#') {
      at += strcspn(at, "\n");
    } else if (wanted == CHILDREN && children && *at == ';') {
      wanted = PARENT, at++;
    } else if (wanted == ARROW && at[0] == '=' && at[1] == '>') {
      wanted = CHILDREN, children = 0, at += 2;
    } else {
      const char *end = word_end(at);
      size_t length = end > at ? (size_t)(end - at) : 1;
      if (wanted == ARROW || !is_node(at, length))
        return overlay_fail("%s:%d: found '%.*s', wanted %s", graph->from, line, shown_length(at, length), at, expected[wanted]);
      int entry = entry_of(graph, at, length, line);
      if (entry < 0) return OVERLAY_FAILED;
      if (wanted == PARENT)
        parent = entry, wanted = ARROW;
      else if (children++, join(graph, entry, parent, line) != OVERLAY_OK)
        return OVERLAY_FAILED;
      at += length;
    }
  }
  return wanted == PARENT ? OVERLAY_OK
                          : overlay_fail("%s:%d: the statement of '%s' has no end: wanted %s", graph->from, line,
                                         graph->entries[parent].name, expected[wanted]);
}

static int is_label(const char *token, size_t length)
{
  if (length == 0 || length > TOPOLOGY_MAX_NAME || *token == '-' || *token == '.' || *token == ':') return 0;
  for (size_t i = 0; i < length; i++)
    if (!strchr("-._:", token[i]) && !strchr(letters, token[i])) return 0;
  return 1;
}

/* Lines of node,parent after the heading; a parent may come later than its child, or only as one. */
static int read_table(Graph *graph, const char *at)
{
  for (int line = 2; *at; line++) {
    size_t length = strcspn(at, "\n"), end = length && at[length - 1] == '\r' ? length - 1 : length;
    size_t comma = strcspn(at, ",\n");
    if (end > 0) {
      size_t parent = comma < end ? end - comma - 1 : 0;
      if (comma >= end || !is_label(at, comma) || (parent && !is_label(at + comma + 1, parent)))
        return overlay_fail("%s:%d: found '%.*s', wanted NODE,PARENT", graph->from, line, shown_length(at, end), at);
      int node = entry_of(graph, at, comma, line), above = -1;
      if (node < 0 || (parent && (above = entry_of(graph, at + comma + 1, parent, line)) < 0)) return OVERLAY_FAILED;
      if (above >= 0 && join(graph, node, above, line) != OVERLAY_OK) return OVERLAY_FAILED;
    }
    at += length + (at[length] == '\n');
  }
  return OVERLAY_OK;
}

/* Depth first from the one root; what is then unreachable stands in a cycle. */
static Topology *order(Graph *graph)
{
  int root = -1;
  for (int i = 0; i < graph->count; i++) {
    if (graph->entries[i].parent >= 0) continue;
    if (root >= 0)
      return overlay_fail("%s:%d: found a second root '%s', the first is '%s' on line %d", graph->from,
                          graph->entries[i].line, graph->entries[i].name, graph->entries[root].name,
                          graph->entries[root].line),
             NULL;
    root = i;
  }
  if (!graph->count) return overlay_fail("%s: found no nodes", graph->from), NULL;
  if (root < 0)
    return overlay_fail("%s:1: a cycle: every node has a parent, '%s' too", graph->from, graph->entries[0].name), NULL;
  size_t count = (size_t)graph->count;
  int32_t *parent = calloc(count, sizeof *parent), *number = calloc(count, sizeof *number);
  const char **name = calloc(count, sizeof *name);
  Topology *tree = NULL;
  if (!parent || !number || !name) {
    overlay_fail("no memory for %zu nodes", count);
    goto end;
  }
  int nodes = 0, at = root;
  memset(number, -1, count * sizeof *number);
  while (at >= 0) {
    Entry *entry = &graph->entries[at];
    number[at] = nodes;
    name[nodes] = entry->name;
    parent[nodes++] = entry->parent >= 0 ? number[entry->parent] : -1;
    if (entry->first >= 0) {
      at = entry->first;
    } else {
      while (at >= 0 && graph->entries[at].next < 0) at = graph->entries[at].parent;
      if (at >= 0) at = graph->entries[at].next;
    }
  }
  if (nodes == graph->count) {
    tree = topology_build(parent, name, (uint32_t)nodes);
  } else {
    int lost = 0;
    while (number[lost] >= 0) lost++;
    overlay_fail("%s:%d: a cycle: '%s' cannot be reached from the root '%s'", graph->from, graph->entries[lost].line,
                 graph->entries[lost].name, graph->entries[root].name);
  }
end:
  free(parent), free(number), free(name);
  return tree;
}

Topology *topology_parse(const char *text, const char *from)
{
  static const char heading[] = "node,parent";
  Graph *graph = malloc(sizeof *graph);
  if (!graph) return overlay_fail("no memory for a topology"), NULL;
  *graph = (Graph){.from = from};
  memset(graph->buckets, -1, sizeof graph->buckets);
  size_t first = strcspn(text, "\r\n");
  int table = first == strlen(heading) && strncmp(text, heading, first) == 0;
  int code = table ? read_table(graph, text + first + strspn(text + first, "\r") +
                                           (text[first + strspn(text + first, "\r")] == '\n'))
                   : read_statements(graph, text);
  Topology *tree = code == OVERLAY_OK ? order(graph) : NULL;
  for (int i = 0; i < graph->count; i++) free(graph->entries[i].name);
  free(graph->entries), free(graph);
  return tree;
}

Topology *topology_read(const char *path)
{
  FILE *file = fopen(path, "rbe");
  if (!file) return overlay_fail("%s: cannot read the topology: %s", path, strerror(errno)), NULL;
  struct stat status;
  Topology *tree = NULL;
  char *text = NULL;
  if (fstat(fileno(file), &status) || !S_ISREG(status.st_mode) || status.st_size > MAX_BYTES) {
    overlay_fail("%s: wanted a topology: a plain file of at most %d MiB", path, MAX_BYTES >> 20);
  } else if (!(text = malloc((size_t)status.st_size + 1))) {
    overlay_fail("%s: no memory for %lld bytes", path, (long long)status.st_size);
  } else {
    size_t length = fread(text, 1, (size_t)status.st_size, file);
    text[length] = '\0';
    if (strlen(text) != length)
      overlay_fail("%s: found a zero byte, wanted text", path);
    else
      tree = topology_parse(text, path);
  }
  free(text);
  fclose(file);
  return tree;
}
