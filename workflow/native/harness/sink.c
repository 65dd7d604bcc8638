/* sink.c: one finished case becomes one file, under its final name only when it is complete. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void make_directory(const char *dir)
{
  if (mkdir(dir, 0777) == 0) return;
  if (errno != EEXIST) user_error("%s: cannot make this folder: %s", dir, strerror(errno));
  struct stat about;
  if (lstat(dir, &about) != 0 || !S_ISDIR(about.st_mode)) user_error("%s: found no folder or a link, wanted a folder", dir);
}

char *sample_path(const char *dir, const char *id)
{
  size_t room = strlen(dir) + strlen(id) + 6;
  char *path = allocate(room, 1);
  snprintf(path, room, "%s/%s.csv", dir, id);
  return path;
}

void write_samples(const char *dir, const char *id, const Samples *samples)
{
  char *path = sample_path(dir, id), *partial;
  FILE *file = open_partial(path, &partial);
  fprintf(file, "id,sample,seconds,skew,valid,stop%s\n", samples->counted ? ",count" : "");
  for (int i = 0; i < samples->count; i++) {
    fprintf(file, "%s,%d,%.9e,", id, i, samples->seconds[i]);
    if (samples->skew) fprintf(file, "%.9e", samples->skew[i]);
    fprintf(file, ",%d,%s", samples->valid[i], stop_name(samples->stop));
    if (samples->counted) fprintf(file, ",%.0f", samples->counted[i]);
    fputc('\n', file);
  }
  commit_partial(file, partial, path);
  free(path);
}
