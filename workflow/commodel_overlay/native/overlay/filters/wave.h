/* wave.h: the values of all packets of a wave, for filters of numbers. */
#ifndef OVERLAY_FILTERS_WAVE_H
#define OVERLAY_FILTERS_WAVE_H

#include "../filter.h"

#include <stdbool.h>

typedef struct {
  int count;            /* of values in a packet */
  Type *types;          /* of value v of packet p: types[p * count + v] */
  OverlayValue *values; /* likewise */
} WaveValues;
/* Fails where a packet holds a string, where packets differ in their types (unless `mixed`: then only in how many there
 * are and which are arrays), and where arrays differ in their length. wave_free() it in any case. */
int wave_values(OverlayWave *wave, const char *filter, bool mixed, WaveValues *all);
void wave_free(WaveValues *all);

#endif
