/* wave.c: what filters of numbers have in common. */
#include "wave.h"

#include <stdlib.h>

void wave_free(WaveValues *all) { free(all->types), free(all->values); }

static int packet_values(OverlayPacket *packet, const char *filter, WaveValues *all, int number)
{
  Type types[MAX_VALUES];
  size_t row = (size_t)number * (size_t)all->count;
  if (format_types(overlay_format(packet), types) != all->count)
    return overlay_fail("filter %s: found packets of different sizes in one wave", filter);
  for (int i = 0; i < all->count; i++) {
    if (types[i].code == 's')
      return overlay_fail("filter %s: found a string in '%s', wanted numbers", filter, overlay_format(packet));
    all->types[row + (size_t)i] = types[i];
  }
  return overlay_values(packet, all->values + row, all->count);
}

int wave_values(OverlayWave *wave, const char *filter, bool mixed, WaveValues *all)
{
  Type types[MAX_VALUES];
  const char *format = overlay_format(wave->in[0]);
  *all = (WaveValues){.count = format_types(format, types)};
  if (all->count < 0) return OVERLAY_FAILED;
  size_t room = (size_t)wave->count * (size_t)all->count + 1;
  all->types = malloc(room * sizeof *all->types);
  all->values = malloc(room * sizeof *all->values);
  if (!all->types || !all->values) return overlay_fail("no memory for a wave");
  for (int p = 0; p < wave->count; p++) {
    if (!mixed && p && !format_same(overlay_format(wave->in[p]), format))
      return overlay_fail("filter %s: found packets '%s' and '%s' in one wave, wanted the same types", filter, format,
                          overlay_format(wave->in[p]));
    if (packet_values(wave->in[p], filter, all, p) < 0) return OVERLAY_FAILED;
    for (int i = 0; i < all->count; i++) {
      size_t at = (size_t)p * (size_t)all->count + (size_t)i;
      if (all->types[at].array != all->types[i].array || all->values[at].count != all->values[i].count)
        return overlay_fail("filter %s: found arrays of %u and %u values in one wave, wanted the same length", filter,
                            all->values[i].count, all->values[at].count);
    }
  }
  return OVERLAY_OK;
}
