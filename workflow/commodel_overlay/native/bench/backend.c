/* backend.c: a back-end, which executes requests and sleeps in between, since many may share a processor. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  OverlayNetwork *network;
  OverlayPacket *answer;
  int clock;
  double skews;
  double began; /* of the last ASK, by the front-end's clock */
  bool late;
  unsigned char *data; /* own data, made on the first request */
  uint32_t bytes;
} BackEnd;

static const clockid_t clocks[] = {[MONOTONIC] = CLOCK_MONOTONIC, [REAL] = CLOCK_REALTIME};

double read_clock(int which)
{
  struct timespec now;
  clock_gettime(clocks[which], &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double common_time(const BackEnd *b) { return read_clock(b->clock) - b->skews; }

static void sleep_until(const BackEnd *b, double common)
{
  double own = common + b->skews;
  struct timespec when = {.tv_sec = (time_t)own};
  when.tv_nsec = (long)((own - (double)when.tv_sec) * 1e9);
  while (clock_nanosleep(clocks[b->clock], TIMER_ABSTIME, &when, NULL) == EINTR)
    ;
}

static void prepare(BackEnd *b, OverlayPacket *packet)
{
  uint32_t bytes, clock, count;
  const double *skews;
  TRY(overlay_unpack(packet, "%ud %ud %alf", &bytes, &clock, &skews, &count));
  int own = overlay_backend(b->network);
  if (clock > REAL || own < 0 || (uint32_t)own >= count) DIE("found clock %u of %u back-ends", clock, count);
  b->clock = (int)clock;
  b->skews = skews[own];
  overlay_release(b->answer);
  if (!(b->answer = make_answer(own, bytes))) DIE("%s", overlay_error());
}

/* If a wave has a wrong payload, the back-end ends without an answer, and the front-end stops. */
static void check(const unsigned char *payload, uint32_t bytes)
{
  if (!is_down(payload, bytes)) DIE("found wrong data in a wave from the root");
}

static void send_answers(BackEnd *b, OverlayPacket *packet, OverlayStream *stream)
{
  uint32_t answers, checked, bytes;
  double when, period;
  const unsigned char *payload;
  TRY(overlay_unpack(packet, "%ud %lf %lf %ud %auc", &answers, &when, &period, &checked, &payload, &bytes));
  if (checked) check(payload, bytes);
  if (!b->answer) DIE("found an ASK before a PREPARE");
  b->late = when > 0 && common_time(b) > when;
  for (uint32_t i = 0; i < answers; i++) {
    if (when > 0) sleep_until(b, when + i * period);
    if (i == 0) b->began = common_time(b);
    TRY(overlay_send_packet(stream, b->answer));
    if (period > 0) TRY(overlay_flush(b->network)); /* before sleeping */
  }
}

static void receive_multicast(const BackEnd *b, OverlayPacket *packet, OverlayStream *stream)
{
  uint32_t last, checked, bytes;
  const unsigned char *payload;
  TRY(overlay_unpack(packet, "%ud %ud %auc", &last, &checked, &payload, &bytes));
  double now = common_time(b);
  if (checked) check(payload, bytes);
  if (last) TRY(overlay_send(stream, CAST, "%lf", now));
}

static void send_data(BackEnd *b, OverlayPacket *packet, OverlayStream *stream)
{
  uint32_t bytes, kinds;
  TRY(overlay_unpack(packet, "%ud %ud", &bytes, &kinds));
  if (!kinds) DIE("found 0 kinds of data");
  if (!b->data || b->bytes != bytes) {
    free(b->data);
    b->data = allocate(b->bytes = bytes, 1);
    fill_data(b->data, bytes, overlay_backend(b->network) % (int)kinds);
  }
  if (overlay_tag(packet) == CLASS)
    TRY(overlay_send(stream, CLASS, "%uld", overlay_checksum(b->data, bytes)));
  else
    TRY(overlay_send(stream, DATA, "%auc", b->data, bytes));
}

static double own_usage(void)
{
  struct rusage own;
  if (getrusage(RUSAGE_SELF, &own) != 0) DIE("no times of this process");
  return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) + 1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
}

static void send_host(OverlayStream *stream)
{
  char host[HOST_BYTES] = "";
  const char *node = getenv("SLURMD_NODENAME"); /* several nodes may share one kernel */
  if (!node || !*node) gethostname(host, sizeof host - 1);
  TRY(overlay_send(stream, NAME, "%s", node && *node ? node : host));
}

static void echo(const BackEnd *b, OverlayPacket *packet, OverlayStream *stream)
{
  const char *address;
  int32_t port;
  uint64_t token;
  uint32_t bytes;
  TRY(overlay_unpack(packet, "%s %d %uld %ud", &address, &port, &token, &bytes));
  int socket = connect_to(address, port, token);
  char *message = allocate((size_t)bytes + 1, 1);
  TRY(overlay_flush(b->network));
  while (exchange(socket, message, bytes, false))
    ;
  close(socket);
  free(message);
  TRY(overlay_send(stream, CONNECT, "%lf", 0.0)); /* it receives from the network again */
}

static void execute_request(BackEnd *b, OverlayPacket *packet, OverlayStream *stream)
{
  switch (overlay_tag(packet)) {
  case PREPARE: prepare(b, packet); break;
  case ASK: send_answers(b, packet, stream); break;
  case CAST: receive_multicast(b, packet, stream); break;
  case BEGAN: TRY(overlay_send(stream, BEGAN, "%lf %lf %lf", -b->began, b->began, (double)b->late)); break;
  case USAGE: TRY(overlay_send(stream, USAGE, "%lf", own_usage())); break;
  case NAME: send_host(stream); break;
  case CLASS:
  case DATA: send_data(b, packet, stream); break;
  case CONNECT: echo(b, packet, stream); break;
  default: DIE("found tag %d, which is no request", overlay_tag(packet));
  }
}

int back_end(void)
{
  BackEnd b = {.network = overlay_attach(NULL, -1)};
  OverlayPacket *packet;
  OverlayStream *stream;
  if (!b.network) user_error("%s", overlay_error());
  prctl(PR_SET_TIMERSLACK, 1UL); /* nanosecond; the default is 50 microseconds */
  while (overlay_recv_any(b.network, -1, &packet, &stream) == OVERLAY_OK) {
    execute_request(&b, packet, stream);
    overlay_release(packet);
  }
  overlay_release(b.answer);
  free(b.data);
  overlay_close(b.network);
  return 0;
}
