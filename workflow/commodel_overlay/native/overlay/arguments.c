/* arguments.c: packing from, and unpacking to, the arguments behind a format string. */
#include "arguments.h"
#include "errors.h"

OverlayPacket *pack_arguments(int tag, const char *format, va_list arguments)
{
  Type types[MAX_VALUES];
  OverlayValue values[MAX_VALUES];
  int count = format_types(format, types);
  for (int i = 0; i < count; i++) {
    values[i] = (OverlayValue){.ud = 0};
    if (types[i].array) {
      values[i].array = va_arg(arguments, const void *);
      values[i].count = va_arg(arguments, uint32_t);
    } else if (types[i].code == 's') {
      values[i].s = va_arg(arguments, const char *);
    } else if (types[i].code == 'f') {
      values[i].lf = va_arg(arguments, double);
    } else if (types[i].size == 8) {
      values[i].ud = va_arg(arguments, uint64_t);
    } else {
      values[i].d = va_arg(arguments, int); /* shorter ones arrive as an int */
    }
  }
  return count < 0 ? NULL : overlay_pack_values(tag, format, values);
}

OverlayPacket *overlay_pack(int tag, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  OverlayPacket *packet = pack_arguments(tag, format, arguments);
  va_end(arguments);
  return packet;
}

int overlay_unpack(OverlayPacket *packet, const char *format, ...)
{
  Type types[MAX_VALUES];
  OverlayValue values[MAX_VALUES];
  if (!format_same(overlay_format(packet), format))
    return overlay_fail("found a packet '%s', wanted '%s'", overlay_format(packet), format);
  int count = overlay_values(packet, values, MAX_VALUES);
  if (count < 0 || (count = format_types(format, types)) < 0) return OVERLAY_FAILED;
  va_list arguments;
  va_start(arguments, format);
  for (int i = 0; i < count; i++) {
    if (types[i].array) {
      *va_arg(arguments, const void **) = values[i].array;
      *va_arg(arguments, uint32_t *) = values[i].count;
    } else if (types[i].code == 's') {
      *va_arg(arguments, const char **) = values[i].s;
    } else {
      set_element(types[i], va_arg(arguments, void *), 0, values[i]);
    }
  }
  va_end(arguments);
  return OVERLAY_OK;
}
