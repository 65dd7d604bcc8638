/* launch.c: processes of children: by fork on this machine, or by a command that runs one on a host.
 *
 * A child learns where to attach from its environment, or from its standard input where a command is between: neither
 * can be seen by other users, as arguments can. The command gets the name of a host and one path, both of letters that
 * mean nothing to a shell: ssh hands what follows a host to one.
 */
#include "launch.h"
#include "errors.h"
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;
enum { MAX_BOOT_BYTES = 32 << 10 }; /* which a pipe holds before its reader has started */

/* ---- commands ---- */
void free_command(char **command)
{
  for (char **word = command; word && *word; word++) free(*word);
  free(command);
}

/* The word with another one in a place in it, as {host}. */
static char *replace_placeholder(const char *word, const char *placeholder, const char *value)
{
  const char *at = strstr(word, placeholder);
  if (!at) return strdup(word);
  size_t room = strlen(word) + strlen(value) + 1;
  char *copy = malloc(room);
  if (copy) snprintf(copy, room, "%.*s%s%s", (int)(at - word), word, value, at + strlen(placeholder));
  return copy;
}

char **launch_command(char *const *launch, const char *host, const char *program)
{
  size_t words = 0;
  while (launch[words]) words++;
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/+";
  if (!*host || *host == '-' || strspn(host, plain) != strlen(host) || strchr(host, '/') || strchr(host, '+'))
    return overlay_fail("found the host '%.80s', wanted a host's name", host), NULL;
  if (*program != '/' || strspn(program, plain) != strlen(program))
    return overlay_fail(
               "found '%.200s', wanted a whole path without blanks and signs, since a shell may read it on the way",
               program),
           NULL;
  char **command = calloc(words + 3, sizeof *command);
  int whole = command != NULL;
  for (size_t i = 0; whole && i < words; i++) whole = (command[i] = replace_placeholder(launch[i], "{host}", host)) != NULL;
  whole = whole && (command[words] = strdup(program)) && (command[words + 1] = strdup("--boot"));
  if (whole) return command;
  free_command(command);
  return overlay_fail("no memory for a command"), NULL;
}

/* ---- processes ---- */

/* The environment with one variable more, in place of one of the same name. */
static char **environment_with(char *setting)
{
  size_t count = 0, name = strcspn(setting, "=") + 1, used = 0;
  while (environ[count]) count++;
  char **all = calloc(count + 2, sizeof *all);
  for (size_t i = 0; all && i < count; i++)
    if (strncmp(environ[i], setting, name) != 0) all[used++] = environ[i];
  if (all) all[used] = setting;
  return all;
}

/* Never returns: the process of a child. What the front-end starts ends with it; but a process of its own machine's tree
 * ends in order then, and one whose parent is lost below attaches to an ancestor. */
static _Noreturn void become(char *const *command, char *const *environment, int input, pid_t ends_with)
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  if (ends_with) prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (ends_with && getppid() != ends_with) _exit(0); /* it went before it could be watched */
  /* Where the front-end has no standard input, `input` itself may have its number. */
  if (input == STDIN_FILENO ? fcntl(input, F_SETFD, 0) == 0 : dup2(input, STDIN_FILENO) >= 0)
    execvpe(command[0], command, environment);
  dprintf(STDERR_FILENO, "overlay: cannot start %s: %s\n", command[0], strerror(errno));
  _exit(127);
}

static pid_t start(char *const *command, char *const *environment, int input, bool ends_with_this)
{
  pid_t own = getpid(), process = fork();
  if (process == 0) become(command, environment, input, ends_with_this ? own : 0);
  return process < 0 ? overlay_fail("cannot start %s: %s", command[0], strerror(errno)) : process;
}

static int start_here(Neighbour *child, const char *attach)
{
  const Settings *settings = &child->network->settings;
  char *node[] = {settings->program, NULL}, setting[MAX_ADDRESS + 128];
  snprintf(setting, sizeof setting, "OVERLAY_ATTACH=%s", attach);
  char **environment = environment_with(setting);
  int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  child->process = 0;
  if (!environment || input < 0)
    overlay_fail("cannot prepare a child: %s", strerror(errno));
  else
    child->process = start(child->is_internal ? node : settings->backend, environment, input,
                           child->network->role == FRONT_END && !child->is_internal);
  free(environment);
  if (input >= 0) close(input);
  return child->process > 0 ? OVERLAY_OK : OVERLAY_FAILED;
}

static int start_there(Neighbour *child, const char *attach)
{
  const OverlayNetwork *network = child->network;
  const Settings *settings = &network->settings;
  char host[TOPOLOGY_MAX_NAME + 1];
  topology_host(network->tree->name[child->node], host);
  uint32_t words = 0;
  while (!child->is_internal && settings->backend[words]) words++;
  OverlayPacket *boot = overlay_pack(0, "%s %s %as", attach, settings->folder, settings->backend, words);
  char **command = boot ? launch_command(settings->launch, host, settings->program) : NULL;
  int ends[2] = {-1, -1};
  child->process = 0;
  if (command && boot->frame->bytes > MAX_BOOT_BYTES)
    overlay_fail("found a command of %u bytes for back-ends, wanted at most %d", boot->frame->bytes, MAX_BOOT_BYTES);
  else if (command && (pipe2(ends, O_CLOEXEC) != 0 ||
                       write(ends[1], boot->frame, boot->frame->bytes) != (ssize_t)boot->frame->bytes))
    overlay_fail("cannot write to a pipe: %s", strerror(errno));
  else if (command)
    child->process = start(command, environ, ends[0], network->role == FRONT_END);
  if (ends[0] >= 0) close(ends[0]), close(ends[1]);
  free_command(command);
  overlay_release(boot);
  return child->process > 0 ? OVERLAY_OK : OVERLAY_FAILED;
}

int start_child(Neighbour *child)
{
  const OverlayNetwork *network = child->network;
  char attach[MAX_ADDRESS + 110];
  int used =
      snprintf(attach, sizeof attach, "%s %d %u ", network->host, network->port, network->node + (uint32_t)child->node);
  for (int i = 0; i < TOKEN_BYTES; i++)
    used += snprintf(attach + used, sizeof attach - (size_t)used, "%02x", network->token[i]);
  if (network->authenticates) snprintf(attach + used, sizeof attach - (size_t)used, " tags");
  return network->settings.launch ? start_there(child, attach) : start_here(child, attach);
}

/* ---- all of them in one step ---- */

/* Hosts in the order of ranks, with commas between. */
static char *hosts_of(const Topology *tree)
{
  char *list = malloc((size_t)tree->nodes * (TOPOLOGY_MAX_NAME + 1)), *end = list;
  for (int node = 1; list && node < tree->nodes; node++) {
    if (node > 1) *end++ = ',';
    topology_host(tree->name[node], end);
    end += strlen(end);
  }
  return list;
}

int start_step(OverlayNetwork *network, const char *connection_file)
{
  const Settings *settings = &network->settings;
  size_t words = 0, backend_words = 0, used = 0;
  while (settings->launch[words]) words++;
  while (settings->backend[backend_words]) backend_words++;
  char tasks[12], *hosts = hosts_of(network->tree), *file = realpath(connection_file, NULL);
  char **command = calloc(words + backend_words + 4, sizeof *command);
  snprintf(tasks, sizeof tasks, "%d", network->tree->nodes - 1);
  int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  bool whole = command && hosts && file && input >= 0;
  for (size_t i = 0; whole && i < words; i++) {
    char *counted = replace_placeholder(settings->launch[i], "{tasks}", tasks);
    whole = counted && (command[used++] = replace_placeholder(counted, "{hosts}", hosts));
    free(counted);
  }
  whole = whole && (command[used++] = strdup(settings->program)) && (command[used++] = strdup("--step")) &&
          (command[used++] = strdup(file));
  for (size_t i = 0; whole && i < backend_words; i++) whole = (command[used++] = strdup(settings->backend[i])) != NULL;
  network->step = whole ? start(command, environ, input, true) : overlay_fail("no memory for a command");
  if (input >= 0) close(input);
  free_command(command), free(hosts), free(file);
  return network->step > 0 ? OVERLAY_OK : OVERLAY_FAILED;
}
