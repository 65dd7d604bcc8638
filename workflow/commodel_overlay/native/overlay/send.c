/* send.c: packs values and sends the packet in one call. */
#include "arguments.h"

int overlay_send(OverlayStream *stream, int tag, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  OverlayPacket *packet = pack_arguments(tag, format, arguments);
  va_end(arguments);
  if (!packet) return OVERLAY_FAILED;
  int code = overlay_send_packet(stream, packet);
  overlay_release(packet);
  return code;
}
