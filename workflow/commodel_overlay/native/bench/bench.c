/* bench.c: overlay-bench: measures the cases of overlay networks, and starts each tree once for all its cases.
 *
 *   overlay-bench --cases cases.csv --out samples [--launch 'ssh {host}']
 *       cases.csv: id,operation,topology,bytes,filter,compute,mode,period[,waves]
 *
 * The front-end is started; it forks the other processes or, with --launch, starts them by that command. Samples are files
 * as those of the MPI programs, with a column for the processor seconds of a wave.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 32, MAX_BYTES = 64 << 20, SINGLE_WAVES = 10 };
static const double resync_seconds = 1.0;

static const Column columns[] = {
    {"operation", "", "reduce, bcast, startup, skew, classes or pingpong", WORD},
    {"topology", "", "file of a tree", WORD},
    {"bytes", "B", "size of a leaf's answer, of a multicast, or of a message", BYTES},
    {"filter", "", "none, min, max, sum, average or concat", WORD},
    {"compute", "s", "time that each node computes instead of the filter; 0: none", NUMBER},
    {"mode", "", "waves, round-trip, synchronous or timed; skew and classes have other modes", WORD},
    {"period", "s", "between two waves of mode timed", NUMBER},
};
static const Program program = {.name = COMMODEL_PROGRAM, .title = "An overlay network: reductions, multicasts, start-up",
                                .kind = "overlay", .columns = columns, .ncolumns = COLUMNS, .min_ranks = 1, .streams = true};
static const char substrate[] = COMMODEL_SUBSTRATE;
static const Operation *const operations[] = {&reduce, &bcast, &startup, &skew, &classes, &pingpong};

static const Operation *find_operation(const Case *c)
{
  const char *name = c->fields[OPERATION].text;
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (strcmp(operations[i]->name, name) == 0) return operations[i];
  case_error(c, "operation", name, columns[OPERATION].meaning);
}

static void require_word(const Case *c, int column, const char *const *words)
{
  for (int i = 0; words[i]; i++)
    if (strcmp(words[i], c->fields[column].text) == 0) return;
  case_error(c, columns[column].name, c->fields[column].text, columns[column].meaning);
}

static void check(const Case *c, bool launched)
{
  static const char *const filters[] = {"none", "min", "max", "sum", "average", "concat", NULL};
  static const char *const modes[] = {"waves", "round-trip", "synchronous", "timed", NULL};
  const Field *fields = c->fields;
  const char *mode = fields[MODE].text;
  bool timed = strcmp(mode, "timed") == 0;
  const Operation *operation = find_operation(c);
  require_word(c, FILTER, filters);
  require_word(c, MODE, operation->modes ? operation->modes : modes);
  if (operation->local_only && launched) case_error(c, "operation", operation->name, "one that runs on other machines, too");
  if (fields[BYTES_].count > MAX_BYTES) case_error(c, "bytes", fields[BYTES_].text, "at most 67108864 bytes");
  if (fields[COMPUTE].real > 1) case_error(c, "compute", fields[COMPUTE].text, "at most 1 s");
  if (timed && !(fields[PERIOD].real > 0 && fields[PERIOD].real <= 1))
    case_error(c, "period", fields[PERIOD].text, "more than 0 and at most 1 s");
  bool stream = operation == &bcast || (operation == &reduce && strcmp(mode, "waves") == 0);
  if (c->waves > 1 && !stream) case_error(c, "waves", "several", "1 for this operation and mode");
}

/* ---- one case ---- */
static double find_fastest_pass(const Operation *operation, Measured *m, const Options *options)
{
  Samples discarded = {0};
  long long passes = options->warmup > 1 ? options->warmup : 1;
  double least = 0;
  grow_samples(&discarded, 1, operation->with | (m->c->waves > 1 ? WITH_LATENCIES : 0));
  for (long long i = 0; i < passes; i++) {
    double start = clock_now();
    operation->sample(m, &discarded, 0, 1);
    double duration = clock_now() - start;
    if (i == 0 || duration < least) least = duration;
  }
  free_samples(&discarded);
  return least;
}

/* Waves are sent in batches, so all waves of a stream may arrive with the first. A single wave is therefore measured
 * separately, and the time between two waves is the additional time of each further wave. */
static double measure_single_wave(const Operation *operation, Measured *m)
{
  double seconds[SINGLE_WAVES];
  operation->single_wave(m); /* warm-up */
  for (int i = 0; i < SINGLE_WAVES; i++) seconds[i] = operation->single_wave(m);
  sort_doubles(seconds, SINGLE_WAVES);
  return median_sorted(seconds, SINGLE_WAVES);
}

static void measure(const Operation *operation, const Case *c, Net *net, const Options *options, Samples *samples)
{
  Measured m = {.c = c, .net = net, .bytes = (size_t)c->fields[BYTES_].count};
  if (operation->needs_network) align_net(net);
  operation->prepare(&m);
  double estimate = find_fastest_pass(operation, &m, options), spent = 0, single = 0;
  int with = operation->with | (c->waves > 1 ? WITH_LATENCIES : 0), depths = 0;
  bool waves = operation == &reduce || operation == &bcast; /* in others, back-ends may be busy elsewhere */
  double *before = waves ? count_levels(net, &depths) : NULL;
  while (samples->stop == STOP_NONE) {
    int first = samples->count, n = next_chunk(options, samples, estimate, spent, false);
    bool counted = operation->needs_network && with & WITH_CPU;
    grow_samples(samples, first + n, with);
    if (operation->needs_network && net->launch && clock_now() - net->synced > resync_seconds) align_net(net);
    if (c->waves > 1) single = measure_single_wave(operation, &m);
    double usage = counted ? net_usage(net) : 0, start = clock_now();
    operation->sample(&m, samples, first, n);
    spent += clock_now() - start;
    double cpu = counted ? (net_usage(net) - usage - net->query) / ((double)n * c->waves) : 0;
    for (int k = first; counted && k < first + n; k++) samples->cpu[k] = cpu;
    for (int k = first; c->waves > 1 && k < first + n; k++) {
      samples->seconds[k] = (samples->seconds[k] - single) / (c->waves - 1);
      samples->valid[k] = samples->valid[k] && samples->seconds[k] >= 0;
      samples->first[k] = samples->last[k] = NAN;
    }
    samples->count += n;
    estimate = spent / samples->count;
    samples->stop = choose_stop(options, samples, spent);
  }
  double *after = before ? count_levels(net, &depths) : NULL;
  if (after) write_levels(options, c->id, before, after, depths);
  free(before), free(after);
  operation->cleanup(&m);
}

static void run_case(const Case *c, Net *net, const Options *options, int done, int total)
{
  const Operation *operation = find_operation(c);
  Samples samples = {0};
  record_current_case(options->out, c->id);
  if (operation->needs_network)
    start_net_once(net);
  else
    stop_net(net);
  measure(operation, c, net, options, &samples);
  write_samples(options->out, c->id, &samples);
  fprintf(stderr, "case %d/%d %s median %.3f us, %d samples, %s\n", done, total, c->id, samples.median * 1e6,
          samples.nvalid, stop_name(samples.stop));
  free_samples(&samples);
}

/* ---- all cases ---- */

/* Removes --launch from the arguments, and returns the words of its command. */
static char **parse_launch(int *argc, char **argv)
{
  for (int i = 1; i < *argc; i++) {
    if (strcmp(argv[i], "--launch") != 0) continue;
    if (i + 1 == *argc) user_error("--launch: found no value, wanted a command");
    char **words = allocate(MAX_WORDS + 1, sizeof *words), *cursor = argv[i + 1];
    int count = 0;
    for (char *word; (word = strtok_r(count ? NULL : argv[i + 1], " ", &cursor)); words[count++] = word)
      if (count == MAX_WORDS) user_error("--launch: found more than %d words", MAX_WORDS);
    bool named = false;
    for (int k = 0; k < count; k++) named |= strstr(words[k], "{host}") != NULL;
    if (!named) user_error("--launch: found no {host} in it, wanted a command that starts another on that host");
    for (int k = i; k + 2 <= *argc; k++) argv[k] = argv[k + 2];
    *argc -= 2;
    return words;
  }
  return NULL;
}

/* Without --launch, all processes are on this host; else the names of the tree are the hosts. */
static void write_setting(const Options *options, const Net *net, double uncertainty)
{
  int nodes = net->launch ? net->tree->nodes : 1;
  char *hosts = allocate((size_t)nodes, HOST_BYTES);
  for (int node = 0; net->launch && node < nodes; node++) {
    char host[TOPOLOGY_MAX_NAME + 1];
    topology_host(net->tree->name[node], host);
    snprintf(hosts + (size_t)node * HOST_BYTES, HOST_BYTES, "%s", host);
  }
  if (!net->launch) gethostname(hosts, HOST_BYTES - 1);
  RunDescription run = {substrate, nodes, hosts, NULL, NULL, "by the mode of each case", uncertainty};
  write_meta(&program, options, &run);
  free(hosts);
}

static void run_all(const CaseFile *file, Net *nets, const Options *options)
{
  int *order = allocate((size_t)file->count, sizeof *order), done = 0;
  double worst = 0;
  bool *finished = allocate((size_t)file->count, sizeof *finished);
  for (int i = 0; i < file->count; i++) done += finished[i] = is_finished(options->out, file->cases[i].id);
  shuffle(order, file->count, (uint64_t)options->seed);
  for (int i = 0; i < file->count; i++) {
    Net *net = &nets[order[i]];
    for (int k = i; k < file->count; k++) { /* all cases of this tree, in their order */
      int own = order[k];
      if (finished[own] || strcmp(nets[own].file, net->file) != 0) continue;
      finished[own] = true;
      run_case(&file->cases[own], net, options, ++done, file->count);
      if (net->uncertainty <= worst) continue;
      worst = net->uncertainty;
      if (options->meta) write_setting(options, nets, worst);
    }
    stop_net(net);
  }
  remove_current_case(options->out);
  free(order);
  free(finished);
}

int main(int argc, char **argv)
{
  if (argc > 1 && strcmp(argv[1], "--back-end") == 0) return back_end();
  if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
    print_description_json(&program, substrate);
    return 0;
  }
  char **launch = parse_launch(&argc, argv);
  Options options = read_options(argc, argv);
  if (options.placement) user_error("--placement: this program has no ranks, a tree names its hosts");
  make_directory(options.out);
  CaseFile file = parse_cases(options.cases, read_text(options.cases, "case file"), columns, COLUMNS, true);
  Net *nets = allocate((size_t)file.count, sizeof *nets);
  for (int i = 0; i < file.count; i++) {
    check(&file.cases[i], launch != NULL);
    nets[i] = read_net(&file.cases[i], file.cases[i].fields[TOPOLOGY].text, launch);
  }
  if (options.meta && file.count) write_setting(&options, &nets[0], launch ? NAN : 0); /* not known yet */
  run_all(&file, nets, &options);
  for (int i = 0; i < file.count; i++) free_net(&nets[i]);
  free(nets);
  free_cases(&file);
  free(launch);
  return 0;
}
