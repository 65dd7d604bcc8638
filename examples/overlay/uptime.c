/* uptime.c: how busy many hosts are, in the time that one takes: `uptime TOPOLOGY`. All of it, as a back-end too. */
#define _DEFAULT_SOURCE
#include "overlay.h"

#include <stdio.h>
#include <stdlib.h>

static int back_end(void)
{
  OverlayNetwork *network = overlay_attach(NULL, -1);
  OverlayStream *stream;
  OverlayPacket *question;
  double load[3];
  while (network && overlay_recv_any(network, -1, &question, &stream) == OVERLAY_OK && getloadavg(load, 3) == 3) {
    overlay_send(stream, 0, "%lf %lf %lf", load[0], load[1], load[2]);
    overlay_release(question);
  }
  overlay_close(network);
  return network == NULL;
}

int main(int argc, char **argv)
{
  if (getenv("OVERLAY_ATTACH")) return back_end();
  OverlayNetwork *network =
      overlay_start(&(OverlayOptions){.topology = argc > 1 ? argv[1] : "", .backend = (char *[]){argv[0], NULL}});
  OverlayStream *stream =
      network ? overlay_open(overlay_broadcast(network), &(OverlayStreamOptions){.filter = "average"}) : NULL;
  OverlayPacket *answer;
  double load[3];
  if (!stream || overlay_send(stream, 0, "") || overlay_recv(stream, 10, &answer) ||
      overlay_unpack(answer, "%lf %lf %lf", &load[0], &load[1], &load[2])) {
    fprintf(stderr, "uptime: %s\n", overlay_error());
    overlay_close(network);
    return 2;
  }
  printf("%d hosts, load average: %.2f, %.2f, %.2f\n", overlay_leaves(answer), load[0], load[1], load[2]);
  overlay_release(answer);
  overlay_close(network);
  return 0;
}
