/* live.c: filters at every level, which change while the stream runs: `live TOPOLOGY ./live_filters.so`. Its back-ends,
 * the same program, answer each question with their number in seconds and how many processes it has passed. */
#include "overlay.h"

#include <stdio.h>
#include <stdlib.h>

static int back_end(void)
{
  OverlayNetwork *network = overlay_attach(NULL, -1);
  OverlayStream *stream;
  OverlayPacket *question;
  int32_t passed;
  while (network && overlay_recv_any(network, -1, &question, &stream) == OVERLAY_OK) {
    if (overlay_unpack(question, "%d", &passed) == OVERLAY_OK)
      overlay_send(stream, 0, "%lf", overlay_backend(network) + passed / 1e3);
    overlay_release(question);
  }
  overlay_close(network);
  return network == NULL;
}

static int ask(OverlayStream *stream, const char *limit)
{
  OverlayPacket *answer;
  uint64_t now, all;
  if (overlay_set_argument(stream, limit) || overlay_send(stream, 0, "%d", 0) || overlay_recv(stream, 10, &answer))
    return OVERLAY_FAILED;
  int code = overlay_unpack(answer, "%uld %uld", &now, &all);
  if (code == OVERLAY_OK)
    printf("%s ms: %lu of %d above, %lu so far\n", limit, (unsigned long)now, overlay_leaves(answer), (unsigned long)all);
  overlay_release(answer);
  return code;
}

int main(int argc, char **argv)
{
  if (getenv("OVERLAY_ATTACH")) return back_end();
  if (argc < 3) return fprintf(stderr, "live TOPOLOGY ./live_filters.so\n"), 2;
  char peaks[512], scaled[512], hops[512];
  snprintf(peaks, sizeof peaks, "%s@peaks:0", argv[2]);
  snprintf(scaled, sizeof scaled, "%s@scaled", argv[2]);
  snprintf(hops, sizeof hops, "%s@hops", argv[2]);
  OverlayNetwork *network = overlay_start(&(OverlayOptions){.topology = argv[1], .backend = (char *[]){argv[0], NULL}});
  OverlayStreamOptions options = {.filter = peaks, .leaf = scaled, .down = hops};
  OverlayStream *stream = network ? overlay_open(overlay_broadcast(network), &options) : NULL;
  int failed = !stream || ask(stream, "0") || ask(stream, "1500") || ask(stream, "2500");
  if (failed) fprintf(stderr, "live: %s\n", overlay_error());
  overlay_close(network);
  return failed ? 2 : 0;
}
