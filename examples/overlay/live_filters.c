/* live_filters.c: several functions in one shared object, which streams name as live_filters.so@FUNCTION:
 *
 *   cc -shared -fPIC -I workflow/commodel_overlay/native/overlay examples/overlay/live_filters.c -o live_filters.so
 *
 * peaks (internal, root) counts the values above a limit that the front-end may change while the stream runs; its count
 * so far survives the loss of a process. scaled (leaf) changes units before anything is sent. hops (down) counts the
 * processes that a question has passed. quorum (sync) makes a wave as soon as enough children have answered.
 */
#include "overlay.h"

#include <stdlib.h>

/* ---- peaks:LIMIT, of "%lf" at back-ends and of "%uld", counts, above ---- */
int peaks(OverlayWave *wave)
{
  uint64_t *all = wave->state ? wave->state : calloc(1, sizeof *all), now = 0;
  double limit = atof(wave->argument), value;
  wave->state = all;
  if (!all) return overlay_fail("no memory for a count");
  for (int i = 0; i < wave->count; i++) {
    uint64_t count;
    if (overlay_unpack(wave->in[i], "%lf", &value) == OVERLAY_OK)
      now += value > limit;
    else if (overlay_unpack(wave->in[i], "%uld", &count) == OVERLAY_OK)
      now += count;
    else
      return OVERLAY_FAILED; /* ends the stream, with overlay_error() as its reason */
  }
  *all += now;
  if (!wave->root) return overlay_emit(wave, "%uld", &(OverlayValue){.ud = now});
  return overlay_emit(wave, "%uld %uld", (OverlayValue[]){{.ud = now}, {.ud = *all}});
}

void peaks_end(void *state) { free(state); }

OverlayPacket *peaks_save(void *state) { return overlay_pack(0, "%uld", *(uint64_t *)state); }

int peaks_load(void **state, OverlayPacket *saved)
{
  uint64_t count, *all = *state ? *state : calloc(1, sizeof *all);
  *state = all;
  if (!all || overlay_unpack(saved, "%uld", &count) != OVERLAY_OK) return OVERLAY_FAILED;
  *all += count;
  return OVERLAY_OK;
}

/* ---- scaled, of "%lf": from seconds to milliseconds ---- */
int scaled(OverlayWave *wave)
{
  double value;
  if (overlay_unpack(wave->in[0], "%lf", &value) != OVERLAY_OK) return OVERLAY_FAILED;
  return overlay_emit(wave, "%lf", &(OverlayValue){.lf = value * 1000});
}

/* ---- hops, of "%d" on its way down ---- */
int hops(OverlayWave *wave)
{
  int32_t passed;
  if (overlay_unpack(wave->in[0], "%d", &passed) != OVERLAY_OK) return OVERLAY_FAILED;
  return overlay_emit(wave, "%d", &(OverlayValue){.d = passed + 1});
}

/* ---- quorum:CHILDREN, which does not wait for the slowest ---- */
int quorum(OverlayArrivals *arrivals)
{
  int wanted = atoi(arrivals->argument), there = 0;
  for (int i = 0; i < arrivals->count; i++) there += arrivals->waiting[i] > 0;
  if (wanted > arrivals->count) wanted = arrivals->count;
  for (int i = 0; there >= wanted && i < arrivals->count; i++) arrivals->take[i] = 1; /* all that are there */
  return OVERLAY_OK;
}
