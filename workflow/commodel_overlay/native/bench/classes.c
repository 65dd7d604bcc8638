/* classes.c: gathers data of which most are equal: back-ends have one of KINDS kinds.
 *
 *   binned  all send a checksum, the network sorts them into classes, and one back-end of each class sends its data
 *   all     all send their data
 */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4 };
static const char *const modes[] = {"binned", "all", NULL};

static int count_kinds(const Measured *m) { return m->net->tree->leaves < KINDS ? m->net->tree->leaves : KINDS; }

/* Receives the data of `count` back-ends, in a packet each. */
static void take_data(const Measured *m, OverlayStream *stream, int count, bool check)
{
  TRY(overlay_send(stream, DATA, "%ud %ud", (uint32_t)m->bytes, (uint32_t)KINDS));
  TRY(overlay_flush(m->net->network));
  for (int received = 0; received < count; received++) {
    OverlayPacket *packet;
    const unsigned char *bytes;
    uint32_t size;
    receive_packet(stream, &packet);
    TRY(overlay_unpack(packet, "%auc", &bytes, &size));
    int kind = overlay_source(packet) % KINDS;
    if (size != m->bytes || (check && !is_data(bytes, size, kind))) DIE("found other data than back-end %d has", overlay_source(packet));
    overlay_release(packet);
  }
}

static void take_classes(const Measured *m, bool check)
{
  OverlayPacket *packet;
  const uint64_t *sums;
  const uint32_t *lowest, *sizes, *backends;
  uint32_t classes, same, too, all;
  int chosen[KINDS];
  TRY(overlay_send(m->stream, CLASS, "%ud %ud", (uint32_t)m->bytes, (uint32_t)KINDS));
  TRY(overlay_flush(m->net->network));
  receive_packet(m->stream, &packet);
  TRY(overlay_unpack(packet, "%auld %aud %aud %aud", &sums, &classes, &lowest, &same, &sizes, &too, &backends, &all));
  int wanted = m->bytes ? count_kinds(m) : 1; /* data of 0 bytes are equal */
  if (classes != (uint32_t)wanted || all != (uint32_t)m->net->tree->leaves) DIE("found %u classes of %u back-ends", classes, all);
  for (uint32_t i = 0; i < classes; i++) chosen[i] = (int)lowest[i];
  overlay_release(packet);
  OverlayComm *some = overlay_subset(m->net->network, chosen, (int)classes);
  OverlayStreamOptions options = {.filter = "none", .sync = OVERLAY_DO_NOT_WAIT, .on_loss = OVERLAY_STOP};
  OverlayStream *stream = some ? overlay_open(some, &options) : NULL;
  if (!stream) DIE("%s", overlay_error());
  take_data(m, stream, (int)classes, check);
  overlay_close_stream(stream);
  overlay_free_comm(some);
}

static void get_data(const Measured *m, bool check)
{
  if (strcmp(m->c->fields[MODE].text, "binned") == 0)
    take_classes(m, check);
  else
    take_data(m, m->stream, m->net->tree->leaves, check);
}

static void prepare(Measured *m)
{
  m->stream = open_stream(m->net, strcmp(m->c->fields[MODE].text, "binned") == 0 ? "bin" : "none");
  get_data(m, true);
}

static void sample(Measured *m, Samples *samples, int first, int n)
{
  for (int k = first; k < first + n; k++) {
    double start = clock_now();
    get_data(m, false);
    samples->seconds[k] = clock_now() - start;
    samples->valid[k] = true;
    samples->skew[k] = NAN;
  }
}

static void cleanup(Measured *m) { overlay_close_stream(m->stream); }

const Operation classes = {.name = "classes", .modes = modes, .needs_network = true, .with = WITH_SKEW | WITH_CPU, .prepare = prepare,
                           .sample = sample, .cleanup = cleanup};
