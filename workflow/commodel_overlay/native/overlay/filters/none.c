/* none.c: packets are forwarded unchanged. */
#include "../filter.h"

int filter_none(OverlayWave *wave)
{
  for (int i = 0; i < wave->count; i++)
    if (overlay_forward(wave, wave->in[i]) != OVERLAY_OK) return OVERLAY_FAILED;
  return OVERLAY_OK;
}
