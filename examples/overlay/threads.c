/* threads.c: two threads that use one network, each with a stream of its own: `threads TOPOLOGY`. One asks for the largest
 * load of all hosts again and again, the other once for all names. threads.py is the same tool in Python. */
#include "overlay.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOAD = 1, NAME };

static int back_end(void)
{
  OverlayNetwork *network = overlay_attach(NULL, -1);
  OverlayStream *stream;
  OverlayPacket *question;
  char name[32];
  double load;
  while (network && overlay_recv_any(network, -1, &question, &stream) == OVERLAY_OK) {
    snprintf(name, sizeof name, "back-end %d", overlay_backend(network));
    if (overlay_tag(question) == NAME)
      overlay_send(stream, 0, "%s", name);
    else if (getloadavg(&load, 1) == 1)
      overlay_send(stream, 0, "%lf", load);
    overlay_release(question);
  }
  overlay_close(network);
  return network == NULL;
}

/* Both return the last answer; NULL where there is none. */
static void *ask(OverlayNetwork *network, const char *filter, int tag, int times)
{
  OverlayStream *stream = overlay_open(overlay_broadcast(network), &(OverlayStreamOptions){.filter = filter});
  OverlayPacket *answer = NULL;
  while (stream && times--) {
    overlay_release(answer);
    answer = NULL;
    if (overlay_send(stream, tag, "") != OVERLAY_OK || overlay_recv(stream, 30, &answer) != OVERLAY_OK) break;
  }
  return answer;
}

static void *watch(void *network) { return ask(network, "max", LOAD, 100); }
static void *collect(void *network) { return ask(network, "concat", NAME, 1); }

int main(int argc, char **argv)
{
  if (getenv("OVERLAY_ATTACH")) return back_end();
  if (argc < 2) return fprintf(stderr, "threads TOPOLOGY\n"), 2;
  OverlayNetwork *network = overlay_start(&(OverlayOptions){.topology = argv[1], .backend = (char *[]){argv[0], NULL}});
  if (!network || overlay_share(network) != OVERLAY_OK) return fprintf(stderr, "threads: %s\n", overlay_error()), 2;
  pthread_t threads[2];
  void *load = NULL, *names = NULL;
  const char *const *list;
  uint32_t count;
  double most;
  if (pthread_create(&threads[0], NULL, watch, network) || pthread_create(&threads[1], NULL, collect, network)) return 2;
  pthread_join(threads[0], &load), pthread_join(threads[1], &names);
  int failed = !load || !names || overlay_unpack(names, "%as", &list, &count) != OVERLAY_OK ||
               overlay_unpack(load, "%lf", &most) != OVERLAY_OK;
  if (!failed) printf("%u names, the last %s; load average at most %.2f\n", count, list[count - 1], most);
  overlay_release(load), overlay_release(names);
  overlay_close(network);
  return failed ? 2 : 0;
}
