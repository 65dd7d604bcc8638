/* joining.c: back-ends that come and go while a network runs: `joining TOPOLOGY FILE`. The connection file FILE tells them
 * where to attach: `joining FILE NUMBER`, once for each leaf of the topology. joining.py is the same tool in Python. */
#include "overlay.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static int back_end(const char *file, int number)
{
  OverlayNetwork *network = overlay_attach(file, number);
  OverlayStream *stream;
  OverlayPacket *question;
  if (!network) return fprintf(stderr, "joining: %s\n", overlay_error()), 2;
  while (overlay_recv_any(network, -1, &question, &stream) == OVERLAY_OK) {
    overlay_send(stream, 0, "%d", 1);
    overlay_release(question);
  }
  overlay_close(network);
  return 0;
}

static void print_events(OverlayNetwork *network)
{
  static const char *const kinds[] = {"lost", "reattached", "", "joined"};
  OverlayEvent event;
  OverlayPacket *answer;
  int count;
  while (overlay_event(network, &event)) {
    if (event.kind == OVERLAY_EVENT_ENDED) continue; /* a stream of this function; each is over all that are there by now */
    OverlayStream *stream = overlay_open(overlay_broadcast(network), &(OverlayStreamOptions){.filter = "sum"});
    if (!stream || overlay_send(stream, 0, "") != OVERLAY_OK || overlay_recv(stream, 30, &answer) != OVERLAY_OK) continue;
    if (overlay_unpack(answer, "%d", &count) == OVERLAY_OK)
      printf("%s: %d of %d answer\n", kinds[event.kind], count, overlay_backends(network));
    overlay_release(answer);
    overlay_close_stream(stream);
  }
}

int main(int argc, char **argv)
{
  if (argc < 3) return fprintf(stderr, "joining TOPOLOGY FILE, or joining FILE NUMBER\n"), 2;
  if (isdigit((unsigned char)*argv[2])) return back_end(argv[1], atoi(argv[2]));
  setvbuf(stdout, NULL, _IOLBF, 0);
  OverlayNetwork *network =
      overlay_start(&(OverlayOptions){.topology = argv[1], .connection_file = argv[2], .join = 1});
  OverlayPacket *packet;
  OverlayStream *stream;
  if (!network) return fprintf(stderr, "joining: %s\n", overlay_error()), 2;
  while (overlay_lost(network, NULL, 0)) { /* joins and losses are noticed while it receives */
    if (overlay_recv_any(network, 0.1, &packet, &stream) == OVERLAY_OK) overlay_release(packet);
    print_events(network);
  }
  print_events(network);
  overlay_close(network);
  return 0;
}
