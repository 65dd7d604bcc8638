/* others.c: multicasts until the last leaf has received; start-up of a network; ping-pongs over one TCP connection. */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- bcast ---- */
typedef struct {
  OverlayPacket **packets; /* of each wave */
  OverlayPacket *single;   /* of one alone */
} Cast;

static OverlayPacket *wave_of(const Measured *m, const unsigned char *payload, bool last, bool check)
{
  OverlayPacket *packet =
      overlay_pack(CAST, "%ud %ud %auc", (uint32_t)last, (uint32_t)check, payload, (uint32_t)m->bytes);
  if (!packet) DIE("%s", overlay_error());
  return packet;
}

/* Sets `last` to the time at which the last leaf received the last wave, by the front-end's clock. */
static void cast(const Measured *m, OverlayPacket **packets, int waves, double *last)
{
  OverlayPacket *answer;
  for (int wave = 0; wave < waves; wave++) TRY(overlay_send_packet(m->stream, packets[wave]));
  TRY(overlay_flush(m->net->network));
  receive_packet(m->stream, &answer);
  TRY(overlay_unpack(answer, "%lf", last));
  if (overlay_leaves(answer) != m->net->tree->leaves) DIE("a multicast was answered by %d leaves", overlay_leaves(answer));
  overlay_release(answer);
}

static void prepare_cast(Measured *m)
{
  Cast *own = m->own = allocate(1, sizeof *own);
  m->stream = open_stream(m->net, "max");
  TRY(overlay_send(m->stream, PREPARE, "%ud %ud %alf", 0u, (uint32_t)(m->net->launch ? REAL : MONOTONIC), m->net->skews,
                   (uint32_t)m->net->tree->leaves));
  unsigned char *payload = allocate(m->bytes, 1);
  fill_down(payload, m->bytes);
  OverlayPacket *checked = wave_of(m, payload, true, true);
  double last;
  cast(m, &checked, 1, &last);
  overlay_release(checked);
  own->packets = allocate((size_t)m->c->waves, sizeof *own->packets);
  own->single = wave_of(m, payload, true, false);
  for (int wave = 0; wave < m->c->waves; wave++) /* all but the last are equal */
    own->packets[wave] = wave > 0 && wave + 1 < m->c->waves ? overlay_keep(own->packets[0])
                                                            : wave_of(m, payload, wave + 1 == m->c->waves, false);
  free(payload);
}

static void cleanup_cast(Measured *m)
{
  Cast *own = m->own;
  for (int wave = 0; wave < m->c->waves; wave++) overlay_release(own->packets[wave]);
  overlay_release(own->single);
  free(own->packets);
  free(own);
  overlay_close_stream(m->stream);
}

static void sample_cast(Measured *m, Samples *samples, int first, int n)
{
  const Cast *own = m->own;
  for (int k = first; k < first + n; k++) {
    double start = net_clock(m->net), last;
    cast(m, own->packets, m->c->waves, &last);
    samples->seconds[k] = last - start;
    samples->valid[k] = exceeds_uncertainty(m->net, samples->seconds[k]);
    samples->skew[k] = NAN;
  }
}

static double cast_single_wave(Measured *m)
{
  double start = net_clock(m->net), last;
  cast(m, &((Cast *)m->own)->single, 1, &last);
  return last - start;
}

const Operation bcast = {.name = "bcast", .needs_network = true, .with = WITH_SKEW | WITH_CPU, .prepare = prepare_cast,
                         .sample = sample_cast, .single_wave = cast_single_wave, .cleanup = cleanup_cast};

/* ---- startup ---- */
static double processor_seconds(void)
{
  double seconds = 0;
  for (int i = 0; i < 2; i++) {
    struct rusage usage;
    if (getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &usage) != 0) DIE("no times of this process");
    seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  return seconds;
}

static void prepare_nothing(Measured *m) { (void)m; }

/* Seconds from the call until all back-ends have joined. The processor time also includes the shutdown. */
static void sample_startup(Measured *m, Samples *samples, int first, int n)
{
  for (int k = first; k < first + n; k++) {
    double before = processor_seconds(), start = clock_now();
    OverlayNetwork *network = start_net(m->net);
    samples->seconds[k] = clock_now() - start;
    Net up = {.network = network};
    wait_for_back_ends(&up);
    overlay_close(network);
    samples->valid[k] = true;
    samples->skew[k] = NAN;
    samples->cpu[k] = m->net->launch ? NAN : processor_seconds() - before;
  }
}

const Operation startup = {.name = "startup", .with = WITH_SKEW | WITH_CPU, .prepare = prepare_nothing, .sample = sample_startup, .cleanup = prepare_nothing};

/* ---- pingpong ---- */
typedef struct {
  int socket;
  char *message;
} Pingpong;

static void prepare_pingpong(Measured *m)
{
  Pingpong *own = m->own = allocate(1, sizeof *own);
  char host[TOPOLOGY_MAX_NAME + 1] = "127.0.0.1", address[64];
  uint64_t token;
  int port;
  if (m->net->launch) topology_host(m->net->tree->name[0], host);
  if (getrandom(&token, sizeof token, 0) != sizeof token) DIE("no random word");
  int listener = listen_on(host, address, &port), first = 0;
  OverlayComm *one = overlay_subset(m->net->network, &first, 1);
  m->stream = one ? overlay_open(one, NULL) : NULL;
  if (!m->stream) DIE("%s", overlay_error());
  overlay_free_comm(one);
  TRY(overlay_send(m->stream, CONNECT, "%s %d %uld %ud", address, port, token, (uint32_t)m->bytes));
  TRY(overlay_flush(m->net->network));
  own->socket = accept_token(listener, token);
  own->message = allocate(m->bytes + 1, 1);
  close(listener);
  fill_down((unsigned char *)own->message, m->bytes);
  if (!exchange(own->socket, own->message, m->bytes, true) || !is_down((unsigned char *)own->message, m->bytes))
    DIE("the other end has not returned the message that it received");
}

static void sample_pingpong(Measured *m, Samples *samples, int first, int n)
{
  Pingpong *own = m->own;
  for (int k = first; k < first + n; k++) {
    double start = clock_now();
    if (!exchange(own->socket, own->message, m->bytes, true)) DIE("the other end has closed the connection");
    samples->seconds[k] = clock_now() - start;
    samples->valid[k] = true;
  }
}

static void cleanup_pingpong(Measured *m)
{
  Pingpong *own = m->own;
  OverlayPacket *packet;
  close(own->socket);
  receive_packet(m->stream, &packet);
  overlay_release(packet);
  overlay_close_stream(m->stream);
  free(own->message);
  free(own);
}

const Operation pingpong = {.name = "pingpong", .needs_network = true, .prepare = prepare_pingpong, .sample = sample_pingpong,
                            .cleanup = cleanup_pingpong};
