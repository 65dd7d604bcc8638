/* sink.c: writes one file for each finished case, which gets its final name only when it is complete. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void make_directory(const char *dir)
{
  if (mkdir(dir, 0777) == 0) return;
  if (errno != EEXIST) user_error("%s: cannot make this folder: %s", dir, strerror(errno));
  struct stat about;
  if (lstat(dir, &about) != 0 || !S_ISDIR(about.st_mode)) user_error("%s: found no folder or a link, wanted a folder", dir);
}

char *sample_path(const char *dir, const char *id)
{
  size_t capacity = strlen(dir) + strlen(id) + 6;
  char *path = allocate(capacity, 1);
  snprintf(path, capacity, "%s/%s.csv", dir, id);
  return path;
}

bool is_finished(const char *dir, const char *id)
{
  char *path = sample_path(dir, id);
  bool exists = access(path, F_OK) == 0;
  free(path);
  return exists;
}

static void write_number(FILE *file, double seconds)
{
  if (isnan(seconds))
    fputc(',', file);
  else
    fprintf(file, ",%.9e", seconds);
}

void write_samples(const char *dir, const char *id, const Samples *samples)
{
  char *path = sample_path(dir, id), *partial;
  FILE *file = open_partial(path, &partial);
  fprintf(file, "id,sample,seconds,skew,valid,stop%s%s%s%s\n", samples->counted ? ",count" : "",
          samples->cpu ? ",cpu" : "", samples->computation ? ",computation" : "", samples->first ? ",first,last" : "");
  for (int i = 0; i < samples->count; i++) {
    fprintf(file, "%s,%d,%.9e", id, i, samples->seconds[i]);
    write_number(file, samples->skew ? samples->skew[i] : NAN);
    fprintf(file, ",%d,%s", samples->valid[i], stop_name(samples->stop));
    if (samples->counted) fprintf(file, ",%.0f", samples->counted[i]);
    if (samples->cpu) write_number(file, samples->cpu[i]);
    if (samples->computation) write_number(file, samples->computation[i]);
    if (samples->first) write_number(file, samples->first[i]);
    if (samples->last) write_number(file, samples->last[i]);
    fputc('\n', file);
  }
  commit_partial(file, partial, path);
  free(path);
}

static char *current_case_path(const char *dir)
{
  size_t capacity = strlen(dir) + 6;
  char *path = allocate(capacity, 1);
  snprintf(path, capacity, "%s/.now", dir);
  return path;
}

/* An existing regular file of this user without other links; -1 if there is none. */
static int open_existing(const char *path, struct stat *about)
{
  int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, about) == 0 && S_ISREG(about->st_mode) && about->st_nlink == 1 && about->st_uid == geteuid() &&
      about->st_size < 1000)
    return fd;
  close(fd);
  return -1;
}

/* DIR/.now names the current case, for the diagnosis of a failed or hanging program. An existing file is overwritten and
 * padded with blanks: some file systems flush a file to disk when it replaces another one, and ranks that wait for this
 * one may keep the processor busy meanwhile. */
void record_current_case(const char *dir, const char *id)
{
  char *path = current_case_path(dir), *partial;
  struct stat about;
  int fd = open_existing(path, &about);
  FILE *file = fd < 0 ? open_partial(path, &partial) : fdopen(fd, "w");
  if (!file) user_error("%s: cannot write: %s", path, strerror(errno));
  fprintf(file, "%-*s\n", fd < 0 ? 0 : (int)about.st_size - 1, id);
  if (fd < 0)
    commit_partial(file, partial, path);
  else if (fclose(file) != 0)
    user_error("%s: cannot write: %s", path, strerror(errno));
  free(path);
}

void remove_current_case(const char *dir)
{
  char *path = current_case_path(dir);
  if (remove(path) != 0 && errno != ENOENT) user_error("%s: cannot remove: %s", path, strerror(errno));
  free(path);
}
