/* arguments.h: packing what stands behind a format string in a call. */
#ifndef OVERLAY_ARGUMENTS_H
#define OVERLAY_ARGUMENTS_H

#include "packet.h"

#include <stdarg.h>

OverlayPacket *pack_arguments(int tag, const char *format, va_list arguments);

#endif
