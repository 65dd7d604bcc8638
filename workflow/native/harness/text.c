/* text.c: reading of files and fields, strict parsing of numbers, JSON strings, atomic writing of files. */
#include "harness.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

char *read_text(const char *path, const char *what)
{
  FILE *file = fopen(path, "rb");
  if (!file) user_error("%s: cannot read the %s: %s", path, what, strerror(errno));
  size_t capacity = 1 << 16, used = 0;
  char *text = allocate(capacity, 1);
  for (;;) {
    used += fread(text + used, 1, capacity - used - 1, file);
    if (used < capacity - 1) break;
    capacity *= 2;
    text = realloc(text, capacity);
    if (!text) DIE("no memory for %zu bytes of %s", capacity, path);
  }
  if (ferror(file)) user_error("%s: cannot read the %s: %s", path, what, strerror(errno));
  fclose(file);
  text[used] = '\0';
  if (strlen(text) != used) user_error("%s: the %s has a zero byte, wanted text", path, what);
  return text;
}

char *next_line(char **cursor)
{
  char *line = *cursor;
  if (!line || !*line) return NULL;
  char *end = strchr(line, '\n');
  if (end) {
    *cursor = end + 1;
    if (end > line && end[-1] == '\r') end--;
    *end = '\0';
  } else {
    *cursor = line + strlen(line);
  }
  return line;
}

int split_fields(char *line, char **fields, int capacity)
{
  int count = 0;
  for (char *field = line; field;) {
    char *comma = strchr(field, ',');
    if (comma) *comma = '\0';
    if (count < capacity) fields[count] = field;
    count++;
    field = comma ? comma + 1 : NULL;
  }
  return count;
}

bool parse_integer(const char *text, long long *value)
{
  char *end;
  if (!*text || strspn(text, "+-0123456789") != strlen(text)) return false;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return !errno && end != text && !*end;
}

bool parse_real(const char *text, double *value)
{
  char *end;
  if (!*text || strspn(text, "+-.eE0123456789") != strlen(text)) return false; /* no nan, inf, hex, blanks */
  *value = strtod(text, &end);
  return end != text && !*end && *value - *value == 0; /* an overflow to infinity is refused too */
}

FILE *open_partial(const char *path, char **partial)
{
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path) + 1 : 0;
  size_t capacity = strlen(path) + 6;
  *partial = allocate(capacity, 1);
  const char *name = path + folder;
  size_t stem = strlen(name);
  if (stem > 4 && strcmp(name + stem - 4, ".csv") == 0) stem -= 4; /* DIR/<id>.csv grows as DIR/.<id>.tmp */
  snprintf(*partial, capacity, "%.*s.%.*s.tmp", folder, path, (int)stem, name);
  /* A new file each time: another user of this folder may have put a link there. */
  remove(*partial);
  int number = open(*partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  FILE *file = number < 0 ? NULL : fdopen(number, "w");
  if (!file) user_error("%s: cannot write: %s", *partial, strerror(errno));
  return file;
}

void commit_partial(FILE *file, char *partial, const char *path)
{
  int broken = ferror(file);
  if (fclose(file) != 0 || broken) user_error("%s: cannot write: %s", partial, strerror(errno));
  if (rename(partial, path) != 0) user_error("%s: cannot rename to %s: %s", partial, path, strerror(errno));
  free(partial);
}

void write_json_string(FILE *file, const char *text)
{
  fputc('"', file);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(file, "\\%c", *c);
    else if (*c < 0x20)
      fprintf(file, "\\u%04x", *c);
    else
      fputc(*c, file);
  }
  fputc('"', file);
}

/* A name with its domain and one without are the same host. */
bool same_host(const char *name, const char *host)
{
  while (*name && tolower((unsigned char)*name) == tolower((unsigned char)*host)) name++, host++;
  return (!*name || *name == '.') && (!*host || *host == '.');
}
