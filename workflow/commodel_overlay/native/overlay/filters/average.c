/* average.c: means of values, and of arrays element by element. Each packet has the number of back-ends in it as weight,
 * so that the mean does not depend on the form of the tree. Results are doubles, also of integers: a wave may therefore
 * have doubles from internal processes and integers from back-ends. */
#include "wave.h"

#include <stdio.h>
#include <stdlib.h>

static double real(Type type, OverlayValue value)
{
  return type.code == 'f' ? value.lf : type.code == 'u' ? (double)value.ud : (double)value.d;
}

static double mean(const OverlayWave *wave, const WaveValues *all, int value, uint32_t element)
{
  double sum = 0, weights = 0;
  for (int p = 0; p < wave->count; p++) {
    size_t at = (size_t)p * (size_t)all->count + (size_t)value;
    Type type = all->types[at];
    OverlayValue number = all->values[at];
    double weight = overlay_leaves(wave->in[p]);
    if (type.array) number = element_of(type, number.array, element);
    sum += weight * real(type, number), weights += weight;
  }
  return sum / weights;
}

int filter_average(OverlayWave *wave)
{
  WaveValues all;
  OverlayValue result[MAX_VALUES];
  char format[MAX_VALUES * 5 + 1] = "";
  int code = wave_values(wave, "average", true, &all), index = 0, used = 0;
  for (; code == OVERLAY_OK && index < all.count; index++) {
    int array = all.types[index].array;
    uint32_t elements = array ? all.values[index].count : 1;
    double *means = malloc((elements + 1) * sizeof *means);
    if (!means) {
      code = overlay_fail("no memory for a wave");
      break;
    }
    for (uint32_t i = 0; i < elements; i++) means[i] = mean(wave, &all, index, i);
    result[index] = (OverlayValue){.array = means, .count = elements};
    used += snprintf(format + used, sizeof format - (size_t)used, "%s%%%slf", index ? " " : "", array ? "a" : "");
  }
  if (code == OVERLAY_OK) {
    OverlayValue values[MAX_VALUES];
    for (int i = 0; i < index; i++)
      values[i] = all.types[i].array ? result[i] : (OverlayValue){.lf = *(const double *)result[i].array};
    code = overlay_emit(wave, format, values);
  }
  while (index-- > 0) free((void *)result[index].array);
  wave_free(&all);
  return code;
}
