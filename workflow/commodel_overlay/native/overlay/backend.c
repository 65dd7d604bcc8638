/* backend.c: networks as a back-end has them: how it joins, and how it leaves. */
#include "errors.h"
#include "network.h"

#include <stdlib.h>
#include <sys/socket.h>

static const double patience = 60; /* seconds for a parent's welcome */

static OverlayNetwork *attach(const char *connection_file, int backend)
{
  char address[MAX_ADDRESS + 110];
  const char *attach = connection_file ? NULL : getenv("OVERLAY_ATTACH");
  if (!connection_file) connection_file = getenv("OVERLAY_CONNECTION");
  if (!attach && !connection_file)
    return overlay_fail("found neither OVERLAY_ATTACH nor OVERLAY_CONNECTION in the environment: a front-end starts "
                        "this program"),
           NULL;
  if (!attach && read_connection_file(connection_file, backend, address) != BACK_END) return NULL;
  OverlayNetwork *network = network_new(BACK_END);
  if (!network) return NULL;
  int code = attach_by(network, attach ? attach : address);
  for (double end = now() + patience; code == OVERLAY_OK && network->state == STARTING;) {
    code = network_progress(network, end - now());
    if (code == OVERLAY_OK && network->state == STARTING && now() > end)
      code = overlay_fail("the parent does not answer");
  }
  /* A network may start and end in one iteration of the event loop: the tool's next receive then returns this. */
  if (code == OVERLAY_OK && !network->backends)
    code = overlay_fail("the parent has refused this process: %s", network->failure[0] ? network->failure : "it ends");
  unsetenv("OVERLAY_ATTACH"); /* it is nothing for processes that this one starts */
  if (code == OVERLAY_OK) return network;
  network_free(network);
  return NULL;
}

OverlayNetwork *overlay_attach(const char *connection_file, int backend) { return attach(connection_file, backend); }

/* What was sent arrives before the socket goes: closing one that has something unread takes back what is under way. */
void drain(OverlayNetwork *network)
{
  Peer *parent = &network->parent.peer;
  double end = now() + 3;
  while (peer_is_up(parent) && parent->queue.count && now() < end)
    if (network_progress(network, end - now()) != OVERLAY_OK) return;
  if (peer_is_up(parent)) shutdown(parent->watch.fd, SHUT_WR);
  while (peer_is_up(parent) && now() < end)
    if (network_progress(network, end - now()) != OVERLAY_OK) return;
}
