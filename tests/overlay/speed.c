/* speed.c: how fast the overlay network is beside bare sockets, both measured in turn in one run: `speed LEAVES
 * ROUNDS`; with more bytes on the way down, `speed LEAVES ROUNDS multicast BYTES`; and reduced waves a minute, pipelined:
 * `speed LEAVES WAVES pipelined`. Prints medians as one line of JSON.
 */
#include "bare.h"
#include "overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(int good, const char *what)
{
  if (good) return;
  fprintf(stderr, "speed: %s: %s\n", what, overlay_error());
  exit(3);
}

/* Answers every question as often as it asks for. */
static int back_end(void)
{
  OverlayNetwork *network = overlay_attach(NULL, -1);
  OverlayStream *stream;
  OverlayPacket *question;
  double waves;
  const char *bytes;
  uint32_t count;
  check(network != NULL, "attach");
  while (overlay_recv_any(network, -1, &question, &stream) == OVERLAY_OK) {
    check(overlay_unpack(question, "%lf %ac", &waves, &bytes, &count) == OVERLAY_OK, "unpack");
    while (waves-- > 0)
      if (overlay_send(stream, 0, "%lf", (double)overlay_backend(network)) != OVERLAY_OK) break;
    overlay_release(question);
  }
  overlay_close(network);
  return 0;
}

static double wave(OverlayStream *stream)
{
  OverlayPacket *answer;
  double sum = 0;
  check(overlay_recv(stream, 60, &answer) == OVERLAY_OK, "recv");
  check(overlay_unpack(answer, "%lf", &sum) == OVERLAY_OK, "unpack");
  overlay_release(answer);
  return sum;
}

static double round_trip(OverlayStream *stream, const char *bytes, uint32_t count)
{
  check(overlay_send(stream, 0, "%lf %ac", 1.0, bytes, count) == OVERLAY_OK, "send");
  return wave(stream);
}

static int ascending(const void *one, const void *other)
{
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
  if (getenv("OVERLAY_ATTACH")) return back_end();
  if (argc == 5 && strcmp(argv[1], "bare-leaf") == 0) bare_leaf(atoi(argv[2]), atoi(argv[3]), (size_t)atol(argv[4]));
  if (argc < 3) return 64;
  int leaves = atoi(argv[1]), rounds = atoi(argv[2]);
  double want = leaves * (leaves - 1) / 2.0, *own = calloc((size_t)rounds, sizeof *own),
         *bare = calloc((size_t)rounds, sizeof *bare);
  char *topology = calloc((size_t)leaves, 16), *at = topology + sprintf(topology, "h:0 =>");
  for (int i = 1; i <= leaves; i++) at += sprintf(at, " h:%d", i);
  strcpy(at, " ;");
  double start = now();
  OverlayNetwork *network =
      overlay_start(&(OverlayOptions){.topology_text = topology, .backend = (char *[]){argv[0], NULL}});
  check(network != NULL, "start");
  start = now() - start;
  OverlayStream *stream = overlay_open(overlay_broadcast(network), &(OverlayStreamOptions){.filter = "sum"});
  check(stream != NULL, "open");
  uint32_t more = argc > 4 ? (uint32_t)atol(argv[4]) : 0;
  char *bytes = calloc(more + 1, 1);
  if (argc == 4) {
    double begin = now();
    check(overlay_send(stream, 0, "%lf %ac", (double)rounds, bytes, 0u) == OVERLAY_OK, "send");
    for (int i = 0; i < rounds; i++) check(wave(stream) == want, "a wrong sum");
    printf("{\"leaves\": %d, \"waves_a_minute\": %.0f, \"start\": %.4f}\n", leaves, 60 * rounds / (now() - begin),
           start);
  } else {
    bare_start(argv[0], leaves, more);
    for (int i = 0; i < rounds; i++) { /* in turn, so that a busy moment of the machine meets both */
      double begin = now();
      check(round_trip(stream, bytes, more) == want, "a wrong sum");
      own[i] = now() - begin, begin = now();
      check(bare_round() == want, "a wrong sum of bare sockets");
      bare[i] = now() - begin;
    }
    bare_end();
    qsort(own, (size_t)rounds, sizeof *own, ascending);
    qsort(bare, (size_t)rounds, sizeof *bare, ascending);
    printf("{\"leaves\": %d, \"overlay_us\": %.1f, \"bare_us\": %.1f, \"ratio\": %.3f, \"start\": %.4f}\n", leaves,
           1e6 * own[rounds / 2], 1e6 * bare[rounds / 2], own[rounds / 2] / bare[rounds / 2], start);
  }
  overlay_close(network);
  free(own), free(bare), free(topology), free(bytes);
  return 0;
}
