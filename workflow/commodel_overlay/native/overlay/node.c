/* node.c: overlay-node, an internal process; and, behind a command that runs it on a host, what becomes a back-end.
 *
 *   OVERLAY_ATTACH='HOST PORT NODE TOKEN' overlay-node
 *   overlay-node --boot < a packet: the same, the folder to be in, the command of a back-end or nothing
 *   overlay-node --step FILE COMMAND …    by its rank a process of a connection file; as a back-end, COMMAND
 */
#include "errors.h"
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USER_ERROR = 2, MAX_BOOT_BYTES = 32 << 10 };

static int read_all(void *into, size_t bytes)
{
  for (size_t have = 0; have < bytes;) {
    ssize_t count = read(STDIN_FILENO, (char *)into + have, bytes - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return overlay_fail("standard input ends too early");
    have += (size_t)count;
  }
  return OVERLAY_OK;
}

/* Sets OVERLAY_ATTACH as it would be on the front-end's own machine, and becomes the back-end if it is one. */
static int boot(void)
{
  Frame frame;
  const char *attach, *folder, *const *command;
  uint32_t words;
  if (read_all(&frame, sizeof frame) != OVERLAY_OK) return OVERLAY_FAILED;
  uint32_t bytes = frame_length(&frame);
  if (bytes < sizeof frame || bytes > MAX_BOOT_BYTES || bytes % 8) return overlay_fail("found no packet to boot from");
  Block *block = block_new(bytes);
  if (!block) return OVERLAY_FAILED;
  memcpy(block->bytes, &frame, sizeof frame);
  OverlayPacket *packet = NULL;
  if (read_all(block->bytes + sizeof frame, bytes - sizeof frame) == OVERLAY_OK)
    packet = packet_of(block, (Frame *)block->bytes);
  if (!packet || overlay_unpack(packet, "%s %s %as", &attach, &folder, &command, &words) != OVERLAY_OK)
    return OVERLAY_FAILED;
  if (chdir(folder) != 0) log_line("not in %s: %s", folder, strerror(errno)); /* another host may not have it */
  if (setenv("OVERLAY_ATTACH", attach, 1) != 0) return overlay_fail("no memory for the environment");
  if (words) {
    char **copy = calloc(words + 1, sizeof *copy);
    if (!copy) return overlay_fail("no memory for a command");
    for (uint32_t i = 0; i < words; i++) copy[i] = (char *)command[i];
    execvp(copy[0], copy);
    return overlay_fail("cannot start %s: %s", copy[0], strerror(errno));
  }
  overlay_release(packet);
  block_release(block);
  return OVERLAY_OK;
}

static int step(const char *file, char **command)
{
  char attach[MAX_ADDRESS + 110];
  Role role = read_connection_file(file, -1, attach);
  if (role == FRONT_END) return OVERLAY_FAILED;
  if (setenv("OVERLAY_ATTACH", attach, 1) != 0) return overlay_fail("no memory for the environment");
  if (role == INTERNAL) return OVERLAY_OK;
  execvp(command[0], command);
  return overlay_fail("cannot start %s: %s", command[0], strerror(errno));
}

int main(int argc, char **argv)
{
  const char *attach;
  bool boots = argc == 2 && strcmp(argv[1], "--boot") == 0, steps = argc > 3 && strcmp(argv[1], "--step") == 0;
  OverlayNetwork *network = NULL;
  if (argc > 1 && !boots && !steps)
    overlay_fail("found '%s', wanted --boot, --step FILE COMMAND or nothing: front-ends start this program", argv[1]);
  else if (boots ? boot() == OVERLAY_OK : !steps || step(argv[2], argv + 3) == OVERLAY_OK) {
    if (!(attach = getenv("OVERLAY_ATTACH")))
      overlay_fail("found no OVERLAY_ATTACH in the environment: front-ends start this program");
    else if ((network = network_new(INTERNAL)) && attach_by(network, attach) != OVERLAY_OK)
      network_free(network), network = NULL;
    unsetenv("OVERLAY_ATTACH");
  }
  if (!network) {
    log_line("%s", overlay_error());
    return USER_ERROR;
  }
  int code = OVERLAY_OK;
  while (code == OVERLAY_OK && network->state < ENDING) code = network_progress(network, -1);
  if (code != OVERLAY_OK) log_line("%s", overlay_error());
  end_children(network);
  network_free(network);
  return code != OVERLAY_OK;
}
