/* answers.c: the back-ends of a driven tool: they answer by a seed, send back, flood, die or hang, as they are asked
 * to. */
#include "drive.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t mix(uint64_t seed, uint64_t backend, uint64_t wave, uint64_t value, uint64_t element)
{
  uint64_t x = seed * 0x9e3779b97f4a7c15u + backend * 0xbf58476d1ce4e5b9u + wave * 0x94d049bb133111ebu +
               value * 0xd6e8feb86659fd93u + element;
  for (int i = 0; i < 3; i++) x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

/* Of every type a small number, halves and eighths where it may have them: sums are exact. */
static OverlayValue number(const char *type, uint64_t x)
{
  if (strchr(type, 'f')) return (OverlayValue){.lf = (double)(int64_t)(x % 2001) / 8 - 125};
  if (strchr(type, 'u')) return (OverlayValue){.ud = x % 4};
  return (OverlayValue){.d = (int64_t)(x % 3) - 1};
}

static void store(const char *type, void *array, uint32_t i, OverlayValue value)
{
  if (strcmp(type, "lf") == 0)
    ((double *)array)[i] = value.lf;
  else if (strcmp(type, "f") == 0)
    ((float *)array)[i] = (float)value.lf;
  else if (strstr(type, "ld"))
    ((int64_t *)array)[i] = value.d;
  else if (strstr(type, "hd"))
    ((int16_t *)array)[i] = (int16_t)value.d;
  else if (strchr(type, 'd'))
    ((int32_t *)array)[i] = (int32_t)value.d;
  else
    ((int8_t *)array)[i] = (int8_t)value.d;
}

static OverlayPacket *answer_of(uint64_t seed, uint64_t backend, uint64_t wave, uint32_t count, const char *format)
{
  char words[512], *rest = words;
  OverlayValue values[MAX_TEST_VALUES];
  void *made[MAX_TEST_VALUES * 64];
  int used = 0, n = 0;
  snprintf(words, sizeof words, "%s", format);
  for (char *word; (word = strsep(&rest, " ")); n++) {
    bool array = word[1] == 'a';
    const char *type = word + 1 + array;
    uint32_t elements = array ? count : 1;
    char *text = malloc((size_t)elements * 32 + 1), **strings = malloc((size_t)elements * sizeof *strings + 1);
    void *numbers = malloc((size_t)elements * 8 + 1);
    for (uint32_t i = 0; i < elements; i++) {
      uint64_t x = mix(seed, backend, wave, (uint64_t)n, i);
      strings[i] = text + 32 * i;
      if (*type == 's') snprintf(strings[i], 32, "b%" PRIu64 "-%" PRIu64, backend, x % 1000);
      values[n] = *type == 's' ? (OverlayValue){.s = text} : number(type, x);
      if (array && *type != 's') store(type, numbers, i, values[n]);
    }
    if (array) values[n].array = *type == 's' ? (void *)strings : numbers, values[n].count = elements;
    made[used++] = text, made[used++] = strings, made[used++] = numbers;
  }
  OverlayPacket *packet = overlay_pack_values(ASK, format, values);
  while (used) free(made[--used]);
  return packet;
}

int count_files(void)
{
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count - 3; /* two names of folders, and the folder itself */
}

static void tell(OverlayNetwork *network, OverlayStream *stream, OverlayPacket *packet)
{
  const char *what;
  int target;
  double seconds;
  if (overlay_unpack(packet, "%s %d %lf", &what, &target, &seconds) != OVERLAY_OK) exit(41);
  if (target >= 0 && target != overlay_backend(network)) return;
  struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  if (strcmp(what, "exit") == 0) _exit(0);
  if (strcmp(what, "kill") == 0) raise(SIGKILL);
  if (strcmp(what, "stop") == 0) raise(SIGSTOP);
  if (strcmp(what, "sleep") == 0) nanosleep(&pause, NULL);
  if (strcmp(what, "leave") == 0) overlay_close(network), exit(0);
  if (strcmp(what, "facts") == 0)
    overlay_send(stream, TELL, "%d %d %s", (int)getpid(), count_files(),
                 getenv("OVERLAY_ATTACH") ? "has the token" : "has none");
}

int back_end(void)
{
  OverlayNetwork *network = overlay_attach(getenv("DRIVE_CONNECTION"), -1);
  OverlayStream *stream;
  OverlayPacket *packet;
  uint64_t seed;
  uint32_t waves, count;
  const char *format, *bytes;
  if (!network) return fprintf(stderr, "back-end: %s\n", overlay_error()), 3;
  while (overlay_recv_any(network, -1, &packet, &stream) == OVERLAY_OK) {
    switch (overlay_tag(packet)) {
    case ASK:
      if (overlay_unpack(packet, "%uld %ud %ud %s", &seed, &waves, &count, &format) != OVERLAY_OK) return 42;
      for (uint32_t wave = 0; wave < waves; wave++) {
        OverlayPacket *answer = answer_of(seed, (uint64_t)overlay_backend(network), wave, count, format);
        if (!answer) return fprintf(stderr, "back-end: %s\n", overlay_error()), 43;
        int code = overlay_send_packet(stream, answer);
        overlay_release(answer);
        bool ended = overlay_ended(stream) != OVERLAY_OK;
        if (code != OVERLAY_OK && ended) return 45; /* what is sent on such a stream is dropped */
        if (code != OVERLAY_OK || ended) break;
      }
      break;
    case ECHO:
      overlay_send_packet(stream, packet);
      break;
    case FLOOD:
      if (overlay_unpack(packet, "%ud %ac", &waves, &bytes, &count) != OVERLAY_OK) return 44;
      for (uint32_t wave = 0; wave < waves; wave++)
        if (overlay_send(stream, FLOOD, "%ud %ac", wave, bytes, count) != OVERLAY_OK || overlay_ended(stream)) break;
      break;
    case TELL:
      tell(network, stream, packet);
      break;
    }
    overlay_release(packet);
  }
  overlay_close(network);
  return 0;
}
