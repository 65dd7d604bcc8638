/* connectionfile.c: a file with the addresses to which processes attach that another program starts. It has a line for each
 * back-end: NUMBER HOST PORT NODE. With `one_step` it has a line for each process, with the front-end's address, and with
 * `internal` at the end for an internal process. The file contains the secret token: it must belong to the user, and no
 * other user may read it. */
#include "errors.h"
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char heading[] = "commodel overlay 1";
static const double wait_seconds = 60; /* until the file exists */

static void write_lines(const OverlayNetwork *network, FILE *file)
{
  const Topology *tree = network->tree;
  fprintf(file, "%s\ntoken ", heading);
  for (int i = 0; i < TOKEN_BYTES; i++) fprintf(file, "%02x", network->token[i]);
  fprintf(file, "%s\n", network->authenticates ? " tags" : "");
  for (int node = 1, number = 0; node < tree->nodes; node++) {
    bool leaf = topology_is_leaf(tree, node), step = network->settings.one_step;
    int parent = step ? 0 : tree->parent[node];
    if (!leaf && !step) continue;
    if (parent == 0)
      fprintf(file, "%d %s %d %d%s\n", number++, network->host, network->port, node, leaf ? "" : " internal");
    else
      fprintf(file, "%d %s %d\n", number++, network->addresses[parent], node);
  }
}

int write_connection_file(OverlayNetwork *network, const char *path)
{
  for (int node = 1; node < network->tree->nodes && !network->settings.one_step; node++)
    if (topology_is_leaf(network->tree, node) && network->tree->parent[node] &&
        !network->addresses[network->tree->parent[node]])
      return overlay_fail("%s has not reported the address for its back-ends",
                          network->tree->name[network->tree->parent[node]]);
  size_t room = strlen(path) + 5;
  char *partial = malloc(room);
  if (!partial) return overlay_fail("no memory for a path");
  snprintf(partial, room, "%s.tmp", path);
  unlink(partial); /* a new file, since another user of this folder may have created a link of that name */
  int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), code = OVERLAY_OK;
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (file) write_lines(network, file);
  int broken = !file || ferror(file);
  if ((file && fclose(file) != 0) || broken)
    code = overlay_fail("%s: cannot write the connection file: %s", partial, strerror(errno));
  else if (rename(partial, path) != 0)
    code = overlay_fail("%s: cannot rename to %s: %s", partial, path, strerror(errno));
  if (code != OVERLAY_OK)
    unlink(partial);
  else if (!(network->connection_file = strdup(path)))
    code = overlay_fail("no memory for a path"), unlink(path);
  free(partial);
  return code;
}

/* Removes the file once all have attached, so that a front-end that is killed later leaves none. */
void remove_connection_file(OverlayNetwork *network)
{
  if (network->connection_file) unlink(network->connection_file);
  free(network->connection_file);
  network->connection_file = NULL;
}

/* Environment variables of process managers with the rank of a process. */
static int rank_in_job(void)
{
  static const char *const names[] = {"OVERLAY_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text && *text && strlen(text) < 9 && strspn(text, "0123456789") == strlen(text)) return atoi(text);
  }
  return overlay_fail("found no rank in the environment, wanted one of OVERLAY_RANK, PMIX_RANK, PMI_RANK, "
                      "OMPI_COMM_WORLD_RANK, SLURM_PROCID");
}

static FILE *open_private(const char *path)
{
  struct stat status;
  int fd; /* non-blocking: opening a pipe would wait for its other end */
  double since = now();
  while ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0 && errno == ENOENT && now() - since < wait_seconds)
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
  if (!file && fd >= 0) close(fd);
  if (!file) return overlay_fail("%s: cannot read the connection file: %s", path, strerror(errno)), NULL;
  if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 077))
    return file;
  fclose(file);
  return overlay_fail("%s: wanted a connection file that belongs to you and that no other user can read", path), NULL;
}

Role read_connection_file(const char *path, int wanted, char attach[static MAX_ADDRESS + 110])
{
  if (wanted < 0 && (wanted = rank_in_job()) < 0) return FRONT_END;
  FILE *file = open_private(path);
  if (!file) return FRONT_END;
  char line[MAX_ADDRESS + 100], token[2 * TOKEN_BYTES + 1] = "", tags[6] = "", host[MAX_ADDRESS], internal[10] = "";
  int number = 1, listed_number = -1, code = OVERLAY_OK;
  while (code == OVERLAY_OK && listed_number != wanted && fgets(line, sizeof line, file)) {
    unsigned port, node;
    int end = 0;
    *internal = '\0';
    if (number == 1 ? strncmp(line, heading, strlen(heading)) == 0 && line[strlen(heading)] == '\n'
        : number == 2
            ? (sscanf(line, "token %64[0-9a-f] %5[tags]\n%n", token, tags, &end) == 2 && end && !line[end]) ||
                  (sscanf(line, "token %64[0-9a-f]\n%n", token, &end) == 1 && end && !line[end])
            : sscanf(line, "%9d %299s %5u %9u %9[internal]\n%n", &listed_number, host, &port, &node, internal, &end) >= 4 &&
                  (!*internal || strcmp(internal, "internal") == 0)) {
      if (number > 2 && listed_number == wanted) snprintf(attach, MAX_ADDRESS + 110, "%s %u %u %s%s", host, port, node, token, *tags ? " tags" : "");
    } else {
      line[strcspn(line, "\n")] = '\0';
      static const char *const forms[] = {heading, "token HEX", "NUMBER HOST PORT NODE"};
      code = overlay_fail("%s:%d: found '%.80s', wanted %s", path, number, number == 2 ? "another line" : line,
                          forms[number < 3 ? number - 1 : 2]);
    }
    number++;
  }
  fclose(file);
  if (code == OVERLAY_OK && listed_number != wanted) code = overlay_fail("%s: found no back-end %d", path, wanted);
  return code != OVERLAY_OK ? FRONT_END : *internal ? INTERNAL : BACK_END;
}
