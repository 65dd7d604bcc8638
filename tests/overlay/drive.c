/* drive.c: a tool on the overlay network that does what its standard input says, a command a line, and answers each in
 * a line of JSON. Its back-ends (answers.c) are the same program; what they send follows from a seed, so that a test
 * knows it too.
 *
 *   open FILTER SYNC SECONDS ON_LOSS [BACKEND…]    a stream, numbered from 0 in the order of opening
 *   live FILTER ROOT LEAF DOWN SYNC_FILTER         likewise, `-` for none;   argument STREAM TEXT
 *   ask STREAM SEED WAVES COUNT FORMAT…            back-ends answer with so many packets; arrays have COUNT elements
 *   recv STREAM SECONDS     any SECONDS     close STREAM     missing STREAM     skew HOW ROUNDS
 *   echo STREAM BYTES       everybody sends back what it got, and the checksums are compared
 *   tell STREAM WHAT SECONDS [BACKEND]             one back-end, or all, is to: exit, kill, sleep, stop, leave, facts
 *   metrics SECONDS     event     node NUMBER
 *   flood STREAM WAVES BYTES   pump STREAM WAVES   quit
 */
#include "drive.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS = 4096 };

static double seconds_now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static OverlayNetwork *network;
static OverlayStream *streams[STREAMS];

static const char *code_name(int code)
{
  static const char *const names[] = {"ok", "failed", "timeout", "closed", "lost"};
  return names[-code];
}

static void print_text(const char *text)
{
  putchar('"');
  for (; *text; text++) *text == '"' || *text == '\\' ? printf("\\%c", *text) : putchar(*text);
  putchar('"');
}

static void say(int code)
{
  printf("{\"code\": \"%s\"", code_name(code));
  if (code) printf(", \"error\": "), print_text(overlay_error());
  puts("}");
}

static void print_number(const char *type, OverlayValue value)
{
  if (*type == 's')
    print_text(value.s);
  else if (strchr(type, 'f'))
    isnan(value.lf) ? printf("NaN") : printf("%.17g", value.lf);
  else if (strchr(type, 'u'))
    printf("%" PRIu64, value.ud);
  else
    printf("%" PRId64, value.d);
}

static OverlayValue load(const char *type, const void *array, uint32_t i)
{
  int u = strchr(type, 'u') != NULL;
  if (*type == 's') return (OverlayValue){.s = ((const char *const *)array)[i]};
  if (strcmp(type, "lf") == 0) return (OverlayValue){.lf = ((const double *)array)[i]};
  if (strcmp(type, "f") == 0) return (OverlayValue){.lf = ((const float *)array)[i]};
  if (strstr(type, "ld")) return (OverlayValue){.d = ((const int64_t *)array)[i]};
  if (strstr(type, "hd"))
    return u ? (OverlayValue){.ud = ((const uint16_t *)array)[i]} : (OverlayValue){.d = ((const int16_t *)array)[i]};
  if (strchr(type, 'd'))
    return u ? (OverlayValue){.ud = ((const uint32_t *)array)[i]} : (OverlayValue){.d = ((const int32_t *)array)[i]};
  return u ? (OverlayValue){.ud = ((const uint8_t *)array)[i]} : (OverlayValue){.d = ((const int8_t *)array)[i]};
}

static void print_packet(OverlayPacket *packet, OverlayStream *stream)
{
  OverlayValue values[MAX_TEST_VALUES];
  char words[512], *rest = words;
  int count = overlay_values(packet, values, MAX_TEST_VALUES), n = 0;
  snprintf(words, sizeof words, "%s", overlay_format(packet));
  printf("{\"code\": \"ok\", \"stream\": %u, \"tag\": %d, \"source\": %d, \"leaves\": %d, \"format\": \"%s\", "
         "\"values\": [",
         overlay_stream_id(stream), overlay_tag(packet), overlay_source(packet), overlay_leaves(packet), words);
  for (char *word; n < count && (word = strsep(&rest, " ")); n++) {
    bool array = word[1] == 'a';
    if (n) printf(", ");
    if (array) putchar('[');
    for (uint32_t i = 0; i < (array ? values[n].count : 1); i++) {
      if (i) printf(", ");
      print_number(word + 1 + array, array ? load(word + 2, values[n].array, i) : values[n]);
    }
    if (array) putchar(']');
  }
  puts("]}");
}

static OverlayStream *stream_named(char **rest)
{
  char *word = strsep(rest, " ");
  return streams[word ? atoi(word) % STREAMS : 0];
}

static double number_of(char **rest)
{
  char *word = strsep(rest, " ");
  return word ? atof(word) : 0;
}

static void open_stream(char *rest)
{
  int members[4096], count = 0;
  OverlayStreamOptions options = {.filter = strsep(&rest, " ")};
  options.sync = (int)number_of(&rest), options.seconds = number_of(&rest), options.on_loss = (int)number_of(&rest);
  while (rest && count < 4096) members[count++] = (int)number_of(&rest);
  OverlayComm *comm = count ? overlay_subset(network, members, count) : overlay_broadcast(network);
  OverlayStream *stream = comm ? overlay_open(comm, &options) : NULL;
  overlay_free_comm(comm);
  if (stream) streams[overlay_stream_id(stream)] = stream;
  say(stream ? OVERLAY_OK : OVERLAY_FAILED);
}

static void open_live(char *rest)
{
  const char *names[5];
  for (int i = 0; i < 5; i++) {
    names[i] = strsep(&rest, " ");
    if (!names[i] || strcmp(names[i], "-") == 0) names[i] = NULL;
  }
  OverlayStreamOptions options = {
      .filter = names[0], .root = names[1], .leaf = names[2], .down = names[3], .sync_filter = names[4]};
  OverlayStream *stream = overlay_open(overlay_broadcast(network), &options);
  if (stream) streams[overlay_stream_id(stream)] = stream;
  say(stream ? OVERLAY_OK : OVERLAY_FAILED);
}

static void receive(OverlayStream *stream, double seconds, bool any)
{
  OverlayPacket *packet = NULL;
  int code = any ? overlay_recv_any(network, seconds, &packet, &stream) : overlay_recv(stream, seconds, &packet);
  if (code != OVERLAY_OK) return say(code);
  print_packet(packet, stream);
  overlay_release(packet);
}

/* KiB that this process ever had; what getrusage() tells is also its parent's before the exec. */
static long most_memory(void)
{
  char line[256];
  long kib = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kib);
  if (status) fclose(status);
  return kib;
}

/* So many waves, received and counted; pump asks for them one after the other, flood for all at once. */
static void take(OverlayStream *stream, int waves, int bytes, bool at_once)
{
  char *text = calloc((size_t)bytes + 1, 1);
  OverlayPacket *packet;
  int code = at_once ? overlay_send(stream, FLOOD, "%ud %ac", (uint32_t)waves, text, (uint32_t)bytes) : OVERLAY_OK,
      taken = 0;
  double start = seconds_now();
  for (; code == OVERLAY_OK && taken < waves; taken++) {
    if (!at_once) code = overlay_send(stream, ASK, "%uld %ud %ud %s", (uint64_t)taken, 1u, 1u, "%ld %lf");
    if (code == OVERLAY_OK && (code = overlay_recv(stream, 60, &packet)) == OVERLAY_OK) overlay_release(packet);
  }
  free(text);
  if (code != OVERLAY_OK) return say(code);
  printf("{\"code\": \"ok\", \"waves\": %d, \"seconds\": %.6f, \"kib\": %ld}\n", taken, seconds_now() - start,
         most_memory());
}

static void echo(OverlayStream *stream, size_t bytes, int members)
{
  char *text = malloc(bytes + 1);
  const char *back;
  OverlayPacket *packet;
  uint32_t count;
  int code, same = 0;
  for (size_t i = 0; i < bytes; i++) text[i] = (char)mix(bytes, 0, 0, 0, i);
  code = overlay_send(stream, ECHO, "%ac", text, (uint32_t)bytes);
  for (int i = 0; code == OVERLAY_OK && i < members; i++) {
    if ((code = overlay_recv(stream, 60, &packet)) != OVERLAY_OK) break;
    same +=
        overlay_unpack(packet, "%ac", &back, &count) == OVERLAY_OK && count == bytes && memcmp(back, text, bytes) == 0;
    overlay_release(packet);
  }
  free(text);
  if (code != OVERLAY_OK) return say(code);
  printf("{\"code\": \"ok\", \"same\": %d}\n", same);
}

static void list(const char *name, int count, const int *items)
{
  printf("{\"code\": \"ok\", \"%s\": [", name);
  for (int i = 0; i < count; i++) printf("%s%d", i ? ", " : "", items[i]);
  puts("]}");
}

static void skew(int how, int rounds)
{
  int backends = overlay_backends(network);
  double *seconds = calloc(2 * (size_t)backends, sizeof *seconds);
  int code = overlay_skew(network, how, rounds, seconds, seconds + backends);
  if (code != OVERLAY_OK) return say(code);
  printf("{\"code\": \"ok\", \"seconds\": [");
  for (int i = 0; i < 2 * backends; i++) {
    if (i) printf(i == backends ? "], \"uncertainty\": [" : ", ");
    printf(isnan(seconds[i]) ? "NaN" : "%.9f", seconds[i]);
  }
  puts("]}");
  free(seconds);
}

static void metrics(double seconds)
{
  const OverlayMetrics *rows;
  int count = overlay_metrics(network, seconds, &rows);
  if (count < 0) return say(count);
  printf("{\"code\": \"ok\", \"rows\": [");
  for (int i = 0; i < count; i++)
    printf("%s[%d, %d, %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "", rows[i].node, rows[i].stream,
           rows[i].packets_up, rows[i].packets_down, rows[i].waves, rows[i].queued);
  puts("]}");
}

static void event(void)
{
  OverlayEvent event;
  if (!overlay_event(network, &event)) return say(OVERLAY_OK);
  printf("{\"code\": \"ok\", \"event\": [%d, %d, %d, %d, %d, %d, %d], \"why\": ", event.kind, event.first, event.count,
         event.node, event.parent, event.stream, event.code);
  print_text(event.why);
  puts("}");
}

static void node(int number)
{
  OverlayNode about;
  int code = overlay_node(network, number, &about);
  if (code != OVERLAY_OK) return say(code);
  printf("{\"code\": \"ok\", \"name\": \"%s\", \"node\": [%d, %d, %d, %d]}\n", about.name, about.parent, about.depth,
         about.children, about.backend);
}

static void obey(char *line)
{
  char *rest = line, *verb = strsep(&rest, " ");
  int items[4096], count;
  OverlayStream *stream;
  if (strcmp(verb, "open") == 0) return open_stream(rest);
  if (strcmp(verb, "metrics") == 0) return metrics(number_of(&rest));
  if (strcmp(verb, "event") == 0) return event();
  if (strcmp(verb, "node") == 0) return node((int)number_of(&rest));
  if (strcmp(verb, "live") == 0) return open_live(rest);
  if (strcmp(verb, "any") == 0) return receive(NULL, number_of(&rest), true);
  if (strcmp(verb, "lost") == 0) return count = overlay_lost(network, items, 4096), list("lost", count, items);
  if (strcmp(verb, "files") == 0) return count = count_files(), list("files", 1, &count);
  if (strcmp(verb, "skew") == 0) return count = (int)number_of(&rest), skew(count, (int)number_of(&rest));
  stream = stream_named(&rest);
  if (strcmp(verb, "recv") == 0) return receive(stream, number_of(&rest), false);
  if (strcmp(verb, "missing") == 0) return count = overlay_missing(stream, items, 4096), list("missing", count, items);
  if (strcmp(verb, "argument") == 0) return say(overlay_set_argument(stream, rest ? rest : ""));
  if (strcmp(verb, "close") == 0) return overlay_close_stream(stream), say(OVERLAY_OK);
  if (strcmp(verb, "ask") == 0) {
    uint64_t seed = (uint64_t)number_of(&rest);
    uint32_t waves = (uint32_t)number_of(&rest);
    count = (int)number_of(&rest);
    return say(overlay_send(stream, ASK, "%uld %ud %ud %s", seed, waves, (uint32_t)count, rest));
  }
  if (strcmp(verb, "echo") == 0)
    return count = (int)number_of(&rest), echo(stream, (size_t)count, (int)number_of(&rest));
  if (strcmp(verb, "flood") == 0)
    return count = (int)number_of(&rest), take(stream, count, (int)number_of(&rest), true);
  if (strcmp(verb, "pump") == 0) return take(stream, (int)number_of(&rest), 0, false);
  if (strcmp(verb, "tell") == 0) {
    char *what = strsep(&rest, " ");
    double seconds = number_of(&rest);
    int code = overlay_send(stream, TELL, "%s %d %lf", what, rest ? (int)number_of(&rest) : -1, seconds);
    return say(code == OVERLAY_OK ? overlay_flush(network) : code);
  }
  puts("{\"code\": \"unknown\"}");
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "back-end") == 0) return back_end();
  char *launch[16] = {getenv("DRIVE_LAUNCH")}, *silence = getenv("DRIVE_SILENCE"), *window = getenv("DRIVE_WINDOW");
  for (int i = 0; i < 14 && launch[i]; i++) {
    launch[i + 1] = strchr(launch[i], ' ');
    if (launch[i + 1]) *launch[i + 1]++ = '\0';
  }
  char *self = realpath("/proc/self/exe", NULL),
       *backend[] = {getenv("DRIVE_BACKEND") ? getenv("DRIVE_BACKEND") : self, "back-end", NULL};
  OverlayOptions options = {.topology = argc > 1 ? argv[1] : NULL,
                            .backend = getenv("DRIVE_FILE") && !(getenv("DRIVE_STEP") && launch[0]) ? NULL : backend,
                            .connection_file = getenv("DRIVE_FILE"),
                            .launch = launch[0] ? launch : NULL,
                            .bind = getenv("DRIVE_BIND"),
                            .start_seconds = getenv("DRIVE_START") ? atof(getenv("DRIVE_START")) : 0,
                            .silence = silence ? atof(silence) : 0,
                            .authenticate = getenv("DRIVE_TAGS") != NULL,
                            .join = getenv("DRIVE_JOIN") != NULL,
                            .one_step = getenv("DRIVE_STEP") != NULL,
                            .window = window ? (uint32_t)atoi(window) : 0};
  setvbuf(stdout, NULL, _IOLBF, 0);
  network = overlay_start(&options);
  if (network && options.connection_file) {
    puts("{\"code\": \"waiting\"}");
    if (overlay_await(network, options.start_seconds > 0 ? options.start_seconds : 30) != OVERLAY_OK) overlay_close(network), network = NULL;
  }
  if (!network) return say(OVERLAY_FAILED), 2;
  OverlayPhases phases = overlay_phases(network);
  printf("{\"code\": \"ok\", \"backends\": %d, \"launch\": %.6f, \"tree\": %.6f, \"all\": %.6f, \"names\": [",
         overlay_backends(network), phases.launch, phases.tree, phases.backends);
  for (int i = 0; i < overlay_backends(network); i++)
    printf("%s\"%s\"", i ? ", " : "", overlay_backend_name(network, i));
  puts("]}");
  char *line = NULL;
  size_t room = 0;
  for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "quit") == 0) break;
    obey(line);
  }
  free(line), free(self);
  overlay_close(network);
  return 0;
}
