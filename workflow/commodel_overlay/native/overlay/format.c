/* format.c: format strings and the types that they name. */
#include "errors.h"
#include "packet.h"

#include <stdbool.h>
#include <string.h>

/* Returns the end of the type at `at`; NULL if there is none. It compares letters without calling library functions,
 * whose code is not in the caches of a process that has just woken up. */
static const char *parse_type(const char *at, Type *type)
{
  if (*at++ != '%') return NULL;
  bool array = *at == 'a', is_unsigned, is_short, is_long;
  at += array;
  at += is_unsigned = *at == 'u';
  at += is_short = *at == 'h';
  at += is_long = *at == 'l';
  int size = 0;
  if (*at == 'd')
    size = is_short ? 2 : is_long ? 8 : 4;
  else if (*at == 'f' && !is_unsigned && !is_short)
    size = is_long ? 8 : 4;
  else if ((*at == 'c' || (*at == 's' && !is_unsigned)) && !is_short)
    size = 1;
  if (!size || (is_long && (size == 1 || is_short)) || (at[1] != ' ' && at[1])) return NULL;
  *type = (Type){*at == 'c' || *at == 'd' ? is_unsigned ? 'u' : 'd' : *at, (uint8_t)size, array};
  return at + 1;
}

/* Packets of a stream have the same format: the types of the last one are cached. */
enum { MAX_CACHED_BYTES = 24, MAX_CACHED_VALUES = 8 };
static _Thread_local struct {
  char format[MAX_CACHED_BYTES];
  Type types[MAX_CACHED_VALUES];
  int count;
} cached;

int format_types(const char *format, Type types[static MAX_VALUES])
{
  int count = 0;
  if (cached.count && strcmp(format, cached.format) == 0) {
    memcpy(types, cached.types, sizeof cached.types);
    return cached.count;
  }
  for (const char *at = format, *end; *at; at = end) {
    if (*at == ' ') {
      end = at + 1;
    } else if (count == MAX_VALUES) {
      return overlay_fail("format '%.80s …': found more than %d values", format, MAX_VALUES);
    } else if (!(end = parse_type(at, &types[count++]))) {
      int length = (int)strcspn(at, " ");
      return overlay_fail("format '%.80s': found '%.*s', wanted %%c %%d %%ud %%ld %%f %%lf %%s … or an array, %%ad …",
                          format, length < 20 ? length : 20, at);
    }
  }
  size_t bytes = strlen(format) + 1;
  if (count <= MAX_CACHED_VALUES && bytes <= MAX_CACHED_BYTES) {
    memcpy(cached.format, format, bytes), memcpy(cached.types, types, (size_t)count * sizeof *types);
    cached.count = count;
  }
  return count;
}

int format_same(const char *one, const char *other)
{
  for (;; one++, other++) {
    if (*one == *other) {
      if (!*one) return 1;
      continue;
    }
    while (*one == ' ') one++;
    while (*other == ' ') other++;
    if (*one != *other) return 0;
    if (!*one) return 1;
  }
}

/* A number of 1 to 8 bytes at any alignment. */
#define READ(ctype, field)                                                                                             \
  {                                                                                                                    \
    ctype number;                                                                                                      \
    memcpy(&number, (const char *)array + (size_t)index * sizeof number, sizeof number);                               \
    value.field = number;                                                                                              \
    break;                                                                                                             \
  }
#define WRITE(ctype, field)                                                                                            \
  {                                                                                                                    \
    ctype number = (ctype)value.field;                                                                                 \
    memcpy((char *)array + (size_t)index * sizeof number, &number, sizeof number);                                     \
    break;                                                                                                             \
  }
#define SWITCH_ON_TYPE(DO)                                                                                             \
  switch (type.code << 4 | type.size) {                                                                                \
  case 'd' << 4 | 1:                                                                                                   \
    DO(int8_t, d)                                                                                                      \
  case 'd' << 4 | 2:                                                                                                   \
    DO(int16_t, d)                                                                                                     \
  case 'd' << 4 | 4:                                                                                                   \
    DO(int32_t, d)                                                                                                     \
  case 'd' << 4 | 8:                                                                                                   \
    DO(int64_t, d)                                                                                                     \
  case 'u' << 4 | 1:                                                                                                   \
    DO(uint8_t, ud)                                                                                                    \
  case 'u' << 4 | 2:                                                                                                   \
    DO(uint16_t, ud)                                                                                                   \
  case 'u' << 4 | 4:                                                                                                   \
    DO(uint32_t, ud)                                                                                                   \
  case 'u' << 4 | 8:                                                                                                   \
    DO(uint64_t, ud)                                                                                                   \
  case 'f' << 4 | 4:                                                                                                   \
    DO(float, lf)                                                                                                      \
  case 'f' << 4 | 8:                                                                                                   \
    DO(double, lf)                                                                                                     \
  }

OverlayValue element_of(Type type, const void *array, uint32_t index)
{
  OverlayValue value = {.ud = 0};
  SWITCH_ON_TYPE(READ)
  return value;
}

void set_element(Type type, void *array, uint32_t index, OverlayValue value) { SWITCH_ON_TYPE(WRITE) }
