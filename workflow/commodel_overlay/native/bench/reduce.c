/* reduce.c: reductions of the leaves' answers by a filter.
 *
 *   round-trip   from the root's request to all leaves until it has received the wave of their answers
 *   waves        half of that; with several waves, which leaves send one after the other, the time between two
 *   synchronous  all leaves send at an agreed time: from then until the root has received the wave
 *   timed        as synchronous, repeated every period without a new request
 */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double min_lead = 1e-3, lead_growth = 1.5;

typedef struct {
  char filter[64];
  unsigned char *payload;
  bool halved, by_request; /* by_request: leaves answer at once */
  OverlayPacket *single;
} Reduce;

static OverlayPacket *make_request(const Measured *m, int answers, double when, bool check)
{
  const Reduce *own = m->own;
  double period = m->c->fields[PERIOD].real;
  OverlayPacket *packet = overlay_pack(ASK, "%ud %lf %lf %ud %auc", (uint32_t)answers, when, period, (uint32_t)check,
                                       own->payload, own->by_request ? (uint32_t)m->bytes : 0);
  if (!packet) DIE("%s", overlay_error());
  return packet;
}

/* Receives the wave of all leaves: one packet, or one from each leaf if the filter forwards them. */
static void take_wave(const Measured *m, bool check)
{
  const Reduce *own = m->own;
  int leaves = m->net->tree->leaves;
  for (int received = 0; received < leaves;) {
    OverlayPacket *packet;
    receive_packet(m->stream, &packet);
    received += overlay_leaves(packet);
    if (check && !is_reduced(own->filter, packet, leaves, m->bytes))
      DIE("filter %s: the root has received wrong data", own->filter);
    overlay_release(packet);
  }
}

static void send_request(const Measured *m, OverlayPacket *packet)
{
  TRY(overlay_send_packet(m->stream, packet));
  TRY(overlay_flush(m->net->network));
}

static void prepare(Measured *m)
{
  const Field *fields = m->c->fields;
  const char *mode = fields[MODE].text;
  Reduce *own = m->own = allocate(1, sizeof *own);
  own->halved = strcmp(mode, "waves") == 0;
  own->by_request = own->halved || strcmp(mode, "round-trip") == 0;
  if (fields[COMPUTE].real > 0)
    snprintf(own->filter, sizeof own->filter, "work:%.9g", fields[COMPUTE].real);
  else
    snprintf(own->filter, sizeof own->filter, "%s", fields[FILTER].text);
  m->stream = open_stream(m->net, own->filter);
  own->payload = allocate(m->bytes, 1);
  fill_down(own->payload, m->bytes);
  TRY(overlay_send(m->stream, PREPARE, "%ud %ud %alf", (uint32_t)m->bytes, (uint32_t)(m->net->launch ? REAL : MONOTONIC),
                   m->net->skews, (uint32_t)m->net->tree->leaves));
  OverlayPacket *first = make_request(m, 1, 0, own->by_request);
  double before = clock_now();
  send_request(m, first);
  take_wave(m, true);
  m->lead = min_lead + 4 * (clock_now() - before);
  overlay_release(first);
  own->single = make_request(m, 1, 0, false);
  m->packet = make_request(m, m->c->waves, 0, false);
}

static void cleanup(Measured *m)
{
  Reduce *own = m->own;
  overlay_close_stream(m->stream);
  overlay_release(m->packet);
  overlay_release(own->single);
  free(own->payload);
  free(own);
}

/* The difference between the last and the first start of the leaves, and whether a leaf was late. */
static double query_skew(const Measured *m, bool *late)
{
  OverlayPacket *packet;
  double earliest, latest, too_late;
  TRY(overlay_send(m->net->bookkeeping, BEGAN, ""));
  receive_packet(m->net->bookkeeping, &packet);
  TRY(overlay_unpack(packet, "%lf %lf %lf", &earliest, &latest, &too_late));
  overlay_release(packet);
  *late = too_late > 0;
  return latest + earliest;
}

static double round_trip(const Measured *m, OverlayPacket *packet, int waves)
{
  double start = clock_now();
  send_request(m, packet);
  for (int wave = 0; wave < waves; wave++) take_wave(m, false);
  return clock_now() - start;
}

static double single_wave(Measured *m) { return round_trip(m, ((Reduce *)m->own)->single, 1); }

static void sample_requested(const Measured *m, Samples *samples, int k)
{
  const Reduce *own = m->own;
  double seconds = round_trip(m, m->packet, m->c->waves);
  samples->seconds[k] = own->halved && m->c->waves == 1 ? seconds / 2 : seconds;
  samples->valid[k] = true;
  samples->skew[k] = NAN;
}

static void sample_at_common_start(Measured *m, Samples *samples, int first, int n, bool timed)
{
  int waves = timed ? n : 1;
  double period = m->c->fields[PERIOD].real;
  for (int i = 0; i < n; i += waves) {
    double when = net_clock(m->net) + m->lead;
    OverlayPacket *packet = make_request(m, waves, when, false);
    bool late;
    send_request(m, packet);
    for (int wave = 0; wave < waves; wave++) {
      take_wave(m, false);
      samples->seconds[first + i + wave] = net_clock(m->net) - (when + wave * period);
    }
    overlay_release(packet);
    double skew = query_skew(m, &late);
    for (int k = first + i; k < first + i + waves; k++) {
      samples->skew[k] = skew;
      samples->valid[k] = !late && exceeds_uncertainty(m->net, samples->seconds[k]);
    }
    if (late) m->lead *= lead_growth;
  }
}

static void sample(Measured *m, Samples *samples, int first, int n)
{
  const Reduce *own = m->own;
  if (!own->by_request) return sample_at_common_start(m, samples, first, n, strcmp(m->c->fields[MODE].text, "timed") == 0);
  for (int k = first; k < first + n; k++) sample_requested(m, samples, k);
}

const Operation reduce = {.name = "reduce", .needs_network = true, .with = WITH_SKEW | WITH_CPU, .prepare = prepare, .sample = sample,
                          .single_wave = single_wave, .cleanup = cleanup};
