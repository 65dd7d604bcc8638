/* reduce.c: the leaves' answers through a filter.
 *
 *   round-trip   the root requests from all leaves, each answers: until the root has the wave, both ways
 *   waves        half of that; of several waves, which leaves send one after the other, the time between two
 *   synchronous  all leaves send at a time that was agreed on: from then until the root has the wave
 *   timed        as synchronous, and then again every period, without agreeing again
 */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_lead = 1e-3, more = 1.5;

typedef struct {
  char filter[64];
  unsigned char *payload;
  bool halved, asked; /* asked: by the root, at once */
  OverlayPacket *single;
} Reduce;

static OverlayPacket *question(const Measured *m, int answers, double when, bool check)
{
  const Reduce *own = m->own;
  double period = m->c->fields[PERIOD].real;
  OverlayPacket *packet = overlay_pack(ASK, "%ud %lf %lf %ud %auc", (uint32_t)answers, when, period, (uint32_t)check,
                                       own->payload, own->asked ? (uint32_t)m->bytes : 0);
  if (!packet) DIE("%s", overlay_error());
  return packet;
}

/* Until the root has what came of all leaves: one packet, or one from each where the filter lets them pass. */
static void take_wave(const Measured *m, bool check)
{
  const Reduce *own = m->own;
  int leaves = m->net->tree->leaves;
  for (int heard = 0; heard < leaves;) {
    OverlayPacket *packet;
    take(m->stream, &packet);
    heard += overlay_leaves(packet);
    if (check && !is_reduced(own->filter, packet, leaves, m->bytes))
      DIE("filter %s: the root has got another wave than the leaves have sent", own->filter);
    overlay_release(packet);
  }
}

static void ask(const Measured *m, OverlayPacket *packet)
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
  own->asked = own->halved || strcmp(mode, "round-trip") == 0;
  if (fields[COMPUTE].real > 0)
    snprintf(own->filter, sizeof own->filter, "work:%.9g", fields[COMPUTE].real);
  else
    snprintf(own->filter, sizeof own->filter, "%s", fields[FILTER].text);
  m->stream = open_stream(m->net, own->filter);
  own->payload = allocate(m->bytes, 1);
  fill_down(own->payload, m->bytes);
  TRY(overlay_send(m->stream, PREPARE, "%ud %ud %alf", (uint32_t)m->bytes, (uint32_t)(m->net->launch ? REAL : MONOTONIC),
                   m->net->ahead, (uint32_t)m->net->tree->leaves));
  OverlayPacket *first = question(m, 1, 0, own->asked);
  double before = clock_now();
  ask(m, first);
  take_wave(m, true);
  m->lead = least_lead + 4 * (clock_now() - before);
  overlay_release(first);
  own->single = question(m, 1, 0, false);
  m->packet = question(m, m->c->waves, 0, false);
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

/* When the last of the leaves began after a common start, less when the first did; and whether one came too late. */
static double skew_of(const Measured *m, bool *late)
{
  OverlayPacket *packet;
  double earliest, latest, too_late;
  TRY(overlay_send(m->net->bookkeeping, BEGAN, ""));
  take(m->net->bookkeeping, &packet);
  TRY(overlay_unpack(packet, "%lf %lf %lf", &earliest, &latest, &too_late));
  overlay_release(packet);
  *late = too_late > 0;
  return latest + earliest;
}

static double round_trip(const Measured *m, OverlayPacket *packet, int waves)
{
  double start = clock_now();
  ask(m, packet);
  for (int wave = 0; wave < waves; wave++) take_wave(m, false);
  return clock_now() - start;
}

static double once(Measured *m) { return round_trip(m, ((Reduce *)m->own)->single, 1); }

static void sample_asked(const Measured *m, Samples *samples, int k)
{
  const Reduce *own = m->own;
  double seconds = round_trip(m, m->packet, m->c->waves);
  samples->seconds[k] = own->halved && m->c->waves == 1 ? seconds / 2 : seconds;
  samples->valid[k] = true;
  samples->skew[k] = NAN;
}

static void sample_common(Measured *m, Samples *samples, int first, int n, bool timed)
{
  int waves = timed ? n : 1;
  double period = m->c->fields[PERIOD].real;
  for (int i = 0; i < n; i += waves) {
    double when = net_clock(m->net) + m->lead;
    OverlayPacket *packet = question(m, waves, when, false);
    bool late;
    ask(m, packet);
    for (int wave = 0; wave < waves; wave++) {
      take_wave(m, false);
      samples->seconds[first + i + wave] = net_clock(m->net) - (when + wave * period);
    }
    overlay_release(packet);
    double skew = skew_of(m, &late);
    for (int k = first + i; k < first + i + waves; k++) {
      samples->skew[k] = skew;
      samples->valid[k] = !late && is_known(m->net, samples->seconds[k]);
    }
    if (late) m->lead *= more;
  }
}

static void sample(Measured *m, Samples *samples, int first, int n)
{
  const Reduce *own = m->own;
  if (!own->asked) return sample_common(m, samples, first, n, strcmp(m->c->fields[MODE].text, "timed") == 0);
  for (int k = first; k < first + n; k++) sample_asked(m, samples, k);
}

const Operation reduce = {.name = "reduce", .raised = true, .with = WITH_SKEW | WITH_CPU, .prepare = prepare, .sample = sample,
                          .once = once, .cleanup = cleanup};
