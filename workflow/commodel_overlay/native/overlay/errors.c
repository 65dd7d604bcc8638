/* errors.c: the last error of a thread, and log lines on stderr. A library never ends its process. */
#include "errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local char last[512];

/* How many bytes a character of UTF-8 has that starts here; 0: none does, or it is one that drives terminals. */
static int character(const unsigned char *at)
{
  int more = *at >= 0xf0 && *at < 0xf5 ? 3 : *at >= 0xe0 && *at < 0xf0 ? 2 : *at >= 0xc2 && *at < 0xe0 ? 1 : 0;
  if (*at < 0x80) return *at >= 0x20 && *at != 0x7f;
  for (int i = 1; i <= more; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return more && (*at != 0xc2 || at[1] >= 0xa0) ? more + 1 : 0;
}

/* Bytes from elsewhere get into lines: those that would end a line or are no text become '?'. */
static void one_line(char *text)
{
  for (unsigned char *at = (unsigned char *)text; *at;) {
    int length = character(at);
    if (!length) *at = '?';
    at += length ? length : 1;
  }
}

int overlay_fail(const char *format, ...)
{
  char text[sizeof last]; /* an argument may be the last error itself */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  one_line(text);
  memcpy(last, text, sizeof last);
  return OVERLAY_FAILED;
}

const char *overlay_error(void) { return last; }

void log_line(const char *format, ...)
{
  char text[640] = "overlay: ";
  va_list arguments;
  va_start(arguments, format);
  int used = 9 + vsnprintf(text + 9, sizeof text - 10, format, arguments);
  va_end(arguments);
  one_line(text);
  if (used > (int)sizeof text - 2) used = sizeof text - 2;
  text[used] = '\n';
  ssize_t ignored = write(STDERR_FILENO, text, (size_t)used + 1); /* in one go: lines of several processes do not mix */
  (void)ignored;
}
