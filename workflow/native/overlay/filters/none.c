/* none.c: packets go on as they came. */
#include "../filter.h"

int filter_none(OverlayWave *wave)
{
  for (int i = 0; i < wave->count; i++)
    if (overlay_forward(wave, wave->in[i]) != OVERLAY_OK) return OVERLAY_FAILED;
  return OVERLAY_OK;
}
