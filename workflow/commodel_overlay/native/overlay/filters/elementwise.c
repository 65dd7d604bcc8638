/* elementwise.c: minimum, maximum and sum of every value, and of every element of an array. What is not a number stays
 * one, whichever child it came from; a sum that its type cannot hold ends the stream. */
#include "wave.h"

#include <stdlib.h>
#include <string.h>

typedef enum { MIN, MAX, SUM } Operation;
static const char *const names[] = {"min", "max", "sum"};

/* Loops over arrays, one a type, so that compilers make vectors of them. */
#define EXTREME(ctype, better)                                                                                         \
  for (uint32_t i = 0; i < count; i++)                                                                                 \
    if (((const ctype *)from)[i] better((ctype *)into)[i] || ((const ctype *)from)[i] != ((const ctype *)from)[i])     \
      ((ctype *)into)[i] = ((const ctype *)from)[i];                                                                   \
  return 1;
#define ADD_FLOATS(ctype)                                                                                              \
  for (uint32_t i = 0; i < count; i++) ((ctype *)into)[i] += ((const ctype *)from)[i];                                 \
  return 1;
#define ADD_INTEGERS(ctype)                                                                                            \
  for (uint32_t i = 0; i < count; i++)                                                                                 \
    if (__builtin_add_overflow(((ctype *)into)[i], ((const ctype *)from)[i], &((ctype *)into)[i])) return 0;           \
  return 1;
#define OPERATIONS(ctype, ADD)                                                                                         \
  {                                                                                                                    \
    if (operation == MIN) {                                                                                            \
      EXTREME(ctype, <)                                                                                                \
    }                                                                                                                  \
    if (operation == MAX) {                                                                                            \
      EXTREME(ctype, >)                                                                                                \
    }                                                                                                                  \
    ADD(ctype)                                                                                                         \
  }

/* Combines the elements with those that are there. 0: a sum overflows. */
static int combine(Operation operation, Type type, void *into, const void *from, uint32_t count)
{
  switch (type.code << 4 | type.size) {
  case 'd' << 4 | 1:
    OPERATIONS(int8_t, ADD_INTEGERS)
  case 'd' << 4 | 2:
    OPERATIONS(int16_t, ADD_INTEGERS)
  case 'd' << 4 | 4:
    OPERATIONS(int32_t, ADD_INTEGERS)
  case 'd' << 4 | 8:
    OPERATIONS(int64_t, ADD_INTEGERS)
  case 'u' << 4 | 1:
    OPERATIONS(uint8_t, ADD_INTEGERS)
  case 'u' << 4 | 2:
    OPERATIONS(uint16_t, ADD_INTEGERS)
  case 'u' << 4 | 4:
    OPERATIONS(uint32_t, ADD_INTEGERS)
  case 'u' << 4 | 8:
    OPERATIONS(uint64_t, ADD_INTEGERS)
  case 'f' << 4 | 4:
    OPERATIONS(float, ADD_FLOATS)
  default:
    OPERATIONS(double, ADD_FLOATS)
  }
}

/* The first packet's values are copied and the others' combined into them, in the order of the children. */
static int run(OverlayWave *wave, Operation operation)
{
  if (wave->count == 1) return overlay_forward(wave, wave->in[0]);
  WaveValues all;
  OverlayValue result[MAX_VALUES];
  int code = wave_values(wave, names[operation], false, &all), index = 0;
  for (; code == OVERLAY_OK && index < all.count; index++) {
    Type type = all.types[index];
    uint32_t elements = type.array ? all.values[index].count : 1;
    void *into = malloc((size_t)elements * type.size + 1);
    if (!into) {
      code = overlay_fail("no memory for a wave");
      break;
    }
    if (type.array && elements) memcpy(into, all.values[index].array, (size_t)elements * type.size);
    if (!type.array) set_element(type, into, 0, all.values[index]);
    for (int p = 1; p < wave->count && code == OVERLAY_OK; p++) {
      const OverlayValue *value = &all.values[(size_t)p * (size_t)all.count + (size_t)index];
      double scalar;
      if (!type.array) set_element(type, &scalar, 0, *value);
      if (!combine(operation, type, into, type.array ? value->array : &scalar, elements))
        code = overlay_fail("filter %s: a sum in '%s' overflows", names[operation], overlay_format(wave->in[0]));
    }
    result[index] = (OverlayValue){.array = into, .count = elements};
  }
  if (code == OVERLAY_OK) {
    OverlayValue values[MAX_VALUES];
    for (int i = 0; i < index; i++)
      values[i] = all.types[i].array ? result[i] : element_of(all.types[i], result[i].array, 0);
    code = overlay_emit(wave, overlay_format(wave->in[0]), values);
  }
  while (index-- > 0) free((void *)result[index].array);
  wave_free(&all);
  return code;
}

int filter_min(OverlayWave *wave) { return run(wave, MIN); }
int filter_max(OverlayWave *wave) { return run(wave, MAX); }
int filter_sum(OverlayWave *wave) { return run(wave, SUM); }
