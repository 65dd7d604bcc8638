/* errors.h: error reporting of the overlay's parts. */
#ifndef OVERLAY_ERRORS_H
#define OVERLAY_ERRORS_H

#include "overlay.h"

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2))); /* to stderr, after "overlay: " */

#endif
