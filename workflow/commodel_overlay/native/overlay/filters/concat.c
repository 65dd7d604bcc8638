/* concat.c: numbers, strings and arrays of them become one array of each, in the order of back-ends. */
#include "wave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(Type type)
{
  static const char *const names[3][4] = {{"c", "hd", "d", "ld"}, {"uc", "uhd", "ud", "uld"}, {"", "", "f", "lf"}};
  int row = type.code == 'd' ? 0 : type.code == 'u' ? 1 : 2;
  return type.code == 's' ? "s" : names[row][type.size == 1 ? 0 : type.size == 2 ? 1 : type.size == 4 ? 2 : 3];
}

/* A scalar at one child may stand beside an array at another: the tree may be of unequal height. */
static int alike(const Type *one, const Type *other, int count)
{
  for (int i = 0; i < count; i++)
    if (one[i].code != other[i].code || one[i].size != other[i].size) return 0;
  return 1;
}

static void append(Type type, char *into, uint32_t *used, OverlayValue value)
{
  size_t size = type.code == 's' ? sizeof(char *) : type.size;
  if (type.array && value.count)
    memcpy(into + *used * size, value.array, value.count * size);
  else if (!type.array && type.code == 's')
    memcpy(into + *used * size, &value.s, size);
  else if (!type.array)
    set_element(type, into, *used, value);
  *used += type.array ? value.count : 1;
}

/* Value `index` of all packets, in one array. */
static int join(OverlayPacket **in, int packets, int index, OverlayValue *result)
{
  Type types[MAX_VALUES];
  OverlayValue values[MAX_VALUES];
  uint64_t elements = 0;
  uint32_t used = 0;
  for (int p = 0; p < packets; p++) {
    if (format_types(overlay_format(in[p]), types) < 0 || overlay_values(in[p], values, MAX_VALUES) < 0)
      return OVERLAY_FAILED;
    elements += types[index].array ? values[index].count : 1;
  }
  if (elements > MAX_FRAME_BYTES)
    return overlay_fail("filter concat: found %llu values, too many for a packet", (unsigned long long)elements);
  char *into = malloc((size_t)elements * 8 + 1);
  if (!into) return overlay_fail("no memory for a wave");
  for (int p = 0; p < packets; p++) {
    format_types(overlay_format(in[p]), types);
    overlay_values(in[p], values, MAX_VALUES);
    append(types[index], into, &used, values[index]);
  }
  *result = (OverlayValue){.array = into, .count = used};
  return OVERLAY_OK;
}

int filter_concat(OverlayWave *wave)
{
  Type types[MAX_VALUES], others[MAX_VALUES];
  OverlayValue result[MAX_VALUES];
  char format[MAX_VALUES * 6 + 1] = "";
  int count = format_types(overlay_format(wave->in[0]), types), code = count < 0 ? OVERLAY_FAILED : OVERLAY_OK,
      made = 0, used = 0;
  for (int p = 1; code == OVERLAY_OK && p < wave->count; p++)
    if (format_types(overlay_format(wave->in[p]), others) != count || !alike(types, others, count))
      code = overlay_fail("filter concat: found packets '%s' and '%s' in one wave, wanted the same types",
                          overlay_format(wave->in[0]), overlay_format(wave->in[p]));
  for (; code == OVERLAY_OK && made < count; made++) {
    if ((code = join(wave->in, wave->count, made, &result[made])) != OVERLAY_OK) break;
    used += snprintf(format + used, sizeof format - (size_t)used, "%s%%a%s", made ? " " : "", name_of(types[made]));
  }
  if (code == OVERLAY_OK) code = overlay_emit(wave, format, result);
  while (made-- > 0) free((void *)result[made].array);
  return code;
}
