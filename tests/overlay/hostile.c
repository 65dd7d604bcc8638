/* hostile.c: a fuzzer for the readers of packets and topology files: `hostile SEED COUNT`.
 *
 * Valid packets of every kind, sequences of them, and topologies are edited at random and sent to a process in each role,
 * from its parent or from a child. The process must not crash, leak memory or hang; sanitizers report other errors.
 * start_child() and attach_to() are replaced, so that no packet can start a process or open a connection.
 */
#include "errors.h"
#include "network.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 16 };
static uint64_t state;

static uint64_t draw(uint64_t below)
{
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return below ? (state * 0x9e3779b97f4a7c15u >> 20) % below : 0;
}

int start_child(Neighbour *child) { return child ? OVERLAY_OK : OVERLAY_FAILED; }
int attach_to(OverlayNetwork *network, const char *address, double patience)
{
  return overlay_fail("no process at %s for %p in %g s", address, (void *)network, patience);
}
int attach_by(OverlayNetwork *network, const char *attach) { return attach_to(network, attach, 0); }
int start_step(OverlayNetwork *network, const char *file) { return network && file ? OVERLAY_OK : OVERLAY_FAILED; }

/* ---- valid inputs ---- */
static OverlayPacket *make_control_packet(Kind kind, uint32_t stream, OverlayPacket *packet)
{
  packet->frame->kind = (uint8_t)kind, packet->frame->stream = stream;
  set_origin(packet->frame, (Origin){(int)draw(4), 1 + (uint32_t)draw(2), (uint32_t)draw(4)});
  return packet;
}

static OverlayPacket *make_valid_packet(void)
{
  static const int32_t parents[] = {-1, 0, 1, 1, 0};
  static const uint32_t ranges[] = {0, 2, 3, 1};
  static const double numbers[] = {1, 2, 3, 4};
  static const uint32_t ids[] = {0, 1};
  static const uint64_t downs[] = {0, 0};
  static const char *const filters[] = {"sum", "", "", "", ""}, *const others[] = {"concat", "min", "none", "none", ""};
  static const uint64_t counts[6] = {1, 2, 3};
  const char *names[] = {"a:0", "b:1", "c:2", "d:3", "e:4"};
  uint32_t stream = (uint32_t)draw(3);
  switch (draw(25)) {
  case 0:
    return make_control_packet(CONFIG, 0,
                   overlay_pack(0, "%ud %ud %ud %d %ad %as %as %as %s %s %lf %ud %d %d %as", 3, 0, 4, 1, parents, 5, names,
                                5, names, 2, names, 0, "p", "/", 20.0, 1 << 16, (int)draw(2), (int)draw(2), names, 2));
  case 1:
    return make_control_packet(WELCOME, 0, overlay_pack(0, "%ud %ud %d %lf %ud %as", 1, 4, 1, 20.0, 1 << 16, names, 0));
  case 2:
    return make_control_packet(ADDRESS, 0, overlay_pack(0, "%ud %s", 1, "127.0.0.1 1"));
  case 3:
    return make_control_packet(draw(2) ? TREE_UP : READY, 0, overlay_pack(0, ""));
  case 4:
    return make_control_packet(FAILED, 0, overlay_pack(0, "%s", "so"));
  case 5:
    return make_control_packet(OPEN, stream,
                   overlay_pack(0, "%as %d %lf %aud", draw(2) ? filters : others, 5u, (int)draw(3), 0.001, ranges, 4));
  case 6:
    return make_control_packet(SHUT, stream, overlay_pack(0, "%d %s", (int)draw(9) - 6, "it is over"));
  case 7:
    return make_control_packet(CREDIT, stream, overlay_pack(0, "%ud %uld", 1 << 15, draw(3)));
  case 8:
    return make_control_packet(LOST, 0, overlay_pack(0, "%aud %s", ranges, 2, "gone"));
  case 9:
    return draw(2) ? make_control_packet(DRAINED, stream, overlay_pack(0, ""))
                   : make_control_packet(STREAM_FAILED, stream, overlay_pack(0, "%s", "so"));
  case 10:
    return make_control_packet(draw(20) ? PING : SHUTDOWN, 0, overlay_pack(0, ""));
  case 11:
    return make_control_packet(PROBE, (uint32_t)draw(6), overlay_pack(0, "%ud", 0));
  case 12:
    return make_control_packet(ECHO, (uint32_t)draw(6), overlay_pack(0, "%ud %lf", 0, 1.0));
  case 13:
    return make_control_packet(SKEW, 0, overlay_pack(0, "%ud", 3));
  case 14:
    return make_control_packet(SKEWS, 0, overlay_pack(0, "%alf", numbers, 2 * (1 + (uint32_t)draw(2))));
  case 15:
    return make_control_packet(REJOIN, 0, overlay_pack(0, "%aud %auld %aud", ids, 2, downs, 2, ranges, 2));
  case 16:
    return make_control_packet(RESUME, stream, overlay_pack(0, "%aud", ranges, draw(2) ? 1 : 4));
  case 17:
    return make_control_packet(REATTACHED, 0, overlay_pack(0, "%ud %ud %aud %lf", 2, 1, ranges, 2, 0.1));
  case 18:
    return make_control_packet(ARGUMENT, stream, overlay_pack(0, "%s", "0.1"));
  case 19:
    return make_control_packet(STATE, stream, overlay_pack(0, "%d", 1));
  case 20:
    return make_control_packet(draw(2) ? COUNT : COUNTED_ALL, 0, overlay_pack(0, ""));
  case 21:
    return make_control_packet(COUNTED, 0, overlay_pack(0, "%ud %d %auld %alf", 1, 0, counts, 6, numbers, 3));
  case 22:
    return make_control_packet(DATA, stream, overlay_pack(0, "%d %alf %s %as", 7, numbers, 3, "text", names, 3));
  default:
    return make_control_packet(DATA, stream, overlay_pack(0, "%uld", (uint64_t)draw(3)));
  }
}

static size_t swap_bytes(unsigned char *bytes, size_t at, size_t size, uint32_t count)
{
  for (at = (at + size - 1) / size * size; count--; at += size)
    for (size_t i = 0; i < size / 2; i++) {
      unsigned char other = bytes[at + i];
      bytes[at + i] = bytes[at + size - 1 - i], bytes[at + size - 1 - i] = other;
    }
  return at;
}

/* Converts a frame to the other byte order. */
static void swap_frame(Frame *frame)
{
  Type types[MAX_VALUES];
  unsigned char *bytes = (unsigned char *)frame;
  int count = format_types((const char *)(frame + 1), types);
  size_t at = (sizeof *frame + frame->format + 7u) / 8 * 8;
  for (int i = 0; i < count; i++) {
    uint32_t elements = 1;
    for (int counts = types[i].array + (types[i].code == 's'); counts--; at = swap_bytes(bytes, at, 4, 1))
      memcpy(&elements, bytes + (at + 3) / 4 * 4, 4);
    at = types[i].code == 's' ? at + elements : swap_bytes(bytes, at, types[i].size, elements);
  }
  static const int sizes[] = {4, 1, 1, 2, 4, 4, 8};
  for (size_t i = 0, offset = 0; i < sizeof sizes / sizeof *sizes; i++) offset = swap_bytes(bytes, offset, (size_t)sizes[i], 1);
  frame->order = END_OF_ORDERS - OWN_ORDER;
}

static size_t write_valid_packets(unsigned char *bytes)
{
  size_t used = 0;
  for (uint64_t count = 1 + draw(6); count--;) {
    OverlayPacket *packet = make_valid_packet();
    memcpy(bytes + used, packet->frame, packet->frame->bytes);
    used += packet->frame->bytes;
    if (draw(3) == 0) swap_frame((Frame *)(bytes + used - packet->frame->bytes));
    overlay_release(packet);
  }
  return used;
}

static size_t edit(unsigned char *bytes, size_t size)
{
  static const uint32_t edge_values[] = {0,   1,     7,       8,       23,        24,       255,
                                 256, 65535, 1 << 20, 1 << 28, INT32_MAX, 1u << 31, UINT32_MAX};
  for (uint64_t edits = draw(4); edits-- && size;) {
    size_t at = draw(size), length = 1 + draw(32);
    switch (draw(5)) {
    case 0:
      bytes[at] ^= (unsigned char)(1 << draw(8));
      break;
    case 1:
      bytes[at] = (unsigned char)draw(256);
      break;
    case 2: /* a number of a header or of a length */
      if ((at &= ~(size_t)3) + 4 <= size) memcpy(bytes + at, &edge_values[draw(sizeof edge_values / sizeof *edge_values)], 4);
      break;
    case 3: /* bytes are removed */
      if (at + length > size) length = size - at;
      memmove(bytes + at, bytes + at + length, size - at - length);
      size -= length;
      break;
    case 4: /* or repeated */
      if (at + length > size || size + length > MAX_INPUT) break;
      memmove(bytes + at + length, bytes + at, size - at);
      size += length;
    }
  }
  return size;
}

/* ---- processes that read them ---- */
static void attach(Neighbour *neighbour, int *far_end)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) exit(3);
  network_open_peer(neighbour, ends[0]);
  neighbour->tree_up = neighbour->ready = true;
  *far_end = ends[1];
}

/* Adopts a child of a lost internal process; returns the other end of its socket. */
static int adopt_orphan(OverlayNetwork *network)
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) exit(3);
  peer_lose(&network->children[0]->peer, "for a test");
  handle_losses(network);
  if (adoption_of(network, network->node + 2) == ADOPT)
    adopt(network, network->node + 2, 0, ends[0], NULL);
  else
    close(ends[0]);
  return ends[1];
}

static void build_tree(OverlayNetwork *network)
{
  static const int32_t parents[] = {-1, 0, 1, 1, 0, 0};
  static const char *const names[] = {"a:0", "b:1", "c:2", "d:3", "e:4", "f:5"};
  network->backends = 4;
  network->tree = topology_build(parents, names, 6);
  if (!network->tree || network_children(network) != OVERLAY_OK) exit(3);
  network->addresses = calloc(6, sizeof *network->addresses);
}

/* Sends bytes to one process from its parent or from a child. This program is all of its neighbours. */
static void send_input(const unsigned char *bytes, size_t size)
{
  static const Role roles[] = {FRONT_END, INTERNAL, INTERNAL, BACK_END};
  uint64_t kind = draw(4);
  OverlayNetwork *network = network_new(roles[kind]);
  int far[4] = {-1, -1, -1, -1}, from = 0, orphan = -1;
  if (!network) exit(3);
  snprintf(network->host, sizeof network->host, "127.0.0.1");
  if (kind < 2) {
    build_tree(network);
    for (int i = 0; i < network->nchildren; i++) attach(network->children[i], &far[i]);
    from = (int)draw(3);
    if (draw(4)) network->state = RUNNING;
    if (network->state == RUNNING && draw(4) == 0) orphan = adopt_orphan(network);
  }
  if (kind > 0) attach(&network->parent, &far[3]);
  if (kind > 1 || (kind == 1 && draw(2))) from = 3;
  static uint32_t all[] = {0, 4};
  OverlayStreamOptions options = {
      .filter = draw(2) ? "bin" : "min", .sync = (int)draw(3), .seconds = 0.0001, .on_loss = (int)draw(2)};
  if (draw(4) == 0) options.down = options.leaf = "none";
  OverlayPacket *opened = open_packet(&options, &(OverlayComm){.ranges = all, .pairs = 1, .size = 4});
  OverlayStream *stream = kind != 2 && draw(2) ? stream_new(network, 1, opened) : NULL;
  overlay_release(opened);
  if (orphan >= 0) close(far[from]), far[from] = orphan;
  if (orphan >= 0 && draw(4)) { /* the first packet that an orphan has to send */
    static const uint32_t ids[] = {1}, queued[] = {0};
    static const uint64_t downs[] = {0};
    OverlayPacket *packet = make_control_packet(REJOIN, 0, overlay_pack(0, "%aud %auld %aud", ids, 1, downs, 1, queued, 1));
    if (send(orphan, packet->frame, packet->frame->bytes, MSG_NOSIGNAL) < 0) exit(3);
    overlay_release(packet);
  }
  for (size_t sent = 0; sent < size;) { /* in pieces of any size */
    size_t piece = draw(3) ? size - sent : 1 + draw(size - sent);
    ssize_t count = send(far[from], bytes + sent, piece, MSG_NOSIGNAL);
    if (count <= 0) break;
    sent += (size_t)count;
    network_progress(network, 0);
  }
  if (draw(2)) close(far[from]), far[from] = -1;
  for (int turn = 0; turn < 3; turn++) network_progress(network, 0);
  OverlayPacket *packet;
  const OverlayMetrics *rows;
  if (network->role == FRONT_END && network->state == RUNNING && draw(4) == 0) overlay_metrics(network, 0.001, &rows);
  if (network->role != INTERNAL && network->state != STARTING)
    while (overlay_recv_any(network, 0, &packet, &stream) == OVERLAY_OK) overlay_release(packet);
  for (int i = 0; i < 4; i++)
    if (far[i] >= 0) close(far[i]);
  network_free(network);
}

static void parse_topology(void)
{
  static const char *const valid_texts[] = {"a:0 => b:1 c:2 ;\nb:1 => d:3 ; # rest\n", "node,parent\n0,\n1,0\n2,0\n3,1\n",
                                     "a:0 =>\n b:0 c:0\n;"};
  unsigned char text[MAX_INPUT + 1];
  const char *sample = valid_texts[draw(3)];
  size_t size = strlen(sample);
  memcpy(text, sample, size);
  size = edit(text, size);
  text[size] = '\0';
  topology_free(topology_parse((char *)text, "text"));
}

int main(int argc, char **argv)
{
  if (argc != 3) return 64;
  unsigned char *bytes = malloc(MAX_INPUT);
  state = 88172645463325252u + strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u;
  for (long i = 0, count = atol(argv[2]); i < count; i++) {
    uint64_t before = state;
    alarm(20); /* a hang is a failure */
    if (getenv("HOSTILE_SHOW")) fprintf(stderr, "input %ld of state %llu\n", i, (unsigned long long)before);
    if (draw(4) == 0)
      parse_topology();
    else
      send_input(bytes, edit(bytes, write_valid_packets(bytes)));
  }
  free(bytes);
  printf("%s inputs\n", argv[2]);
  return 0;
}
