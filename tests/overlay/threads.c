/* threads.c: several threads of a front-end, each with a stream of its own, over one shared network: `threads TOPOLOGY
 * THREADS ROUNDS`. Back-ends, the same program, answer with their number times the question. */
#include "overlay.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static OverlayNetwork *network;
static int rounds, failures;

static int back_end(void)
{
  OverlayNetwork *own = overlay_attach(NULL, -1);
  OverlayStream *stream;
  OverlayPacket *question;
  int64_t factor;
  while (own && overlay_recv_any(own, -1, &question, &stream) == OVERLAY_OK) {
    if (overlay_unpack(question, "%ld", &factor) == OVERLAY_OK) overlay_send(stream, 0, "%ld", factor * overlay_backend(own));
    overlay_release(question);
  }
  overlay_close(own);
  return 0;
}

static void *ask(void *number)
{
  int64_t backends = overlay_backends(network), sum, factor = (int64_t)(intptr_t)number;
  for (int round = 0; round < rounds; round++, factor++) {
    OverlayStream *stream = overlay_open(overlay_broadcast(network), &(OverlayStreamOptions){.filter = "sum"});
    for (int wave = 0; stream && wave < 20; wave++) {
      OverlayPacket *answer;
      if (overlay_send(stream, 0, "%ld", factor) || overlay_recv(stream, 60, &answer)) {
        fprintf(stderr, "threads: %s\n", overlay_error());
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
        return NULL;
      }
      if (overlay_unpack(answer, "%ld", &sum) || sum != factor * backends * (backends - 1) / 2)
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
      overlay_release(answer);
    }
    overlay_close_stream(stream);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  if (getenv("OVERLAY_ATTACH")) return back_end();
  if (argc != 4) return 64;
  pthread_t threads[16];
  int count = atoi(argv[2]);
  rounds = atoi(argv[3]);
  network = overlay_start(&(OverlayOptions){.topology = argv[1], .backend = (char *[]){argv[0], NULL}});
  if (!network || count > 16 || overlay_share(network) != OVERLAY_OK) return fprintf(stderr, "%s\n", overlay_error()), 2;
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, ask, (void *)(intptr_t)(1000 * i));
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  overlay_close(network);
  printf("%d failures\n", failures);
  return failures != 0;
}
