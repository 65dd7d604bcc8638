/* run.c: from the command line to the last case. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* Rank 0 reads and checks all cases before any measurement; the others get the checked text. */
static CaseFile broadcast_cases(const Program *program, const Options *options, const Alignment *a)
{
  CaseFile file = {0};
  char *text = NULL;
  long long length = 0;
  if (a->rank == 0) {
    text = read_text(options->cases, "case file");
    length = (long long)strlen(text);
    if (length > 1 << 30) user_error("%s: found %lld bytes, wanted at most 1 GiB", options->cases, length);
    char *copy = allocate((size_t)length + 1, 1);
    memcpy(copy, text, (size_t)length);
    file = parse_cases(options->cases, copy, program->columns, program->ncolumns, program->streams);
    for (int i = 0; i < file.count; i++) program->check(&file.cases[i], a->ranks);
  }
  MPI_TRY(MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD));
  if (a->rank != 0) text = allocate((size_t)length + 1, 1);
  MPI_TRY(MPI_Bcast(text, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD));
  if (a->rank != 0) return parse_cases(options->cases, text, program->columns, program->ncolumns, program->streams);
  free(text);
  return file;
}

/* Collective: 1 for each case that has samples. */
static unsigned char *find_finished(const CaseFile *file, const char *dir, int rank)
{
  unsigned char *finished = allocate((size_t)file->count, 1);
  for (int i = 0; rank == 0 && i < file->count; i++) finished[i] = is_finished(dir, file->cases[i].id);
  MPI_TRY(MPI_Bcast(finished, file->count, MPI_UNSIGNED_CHAR, 0, MPI_COMM_WORLD));
  return finished;
}

static void run_case(const Program *program, const Case *c, const Options *options, Alignment *a, int done, int total)
{
  Samples samples = {0};
  if (a->rank == 0) record_current_case(options->out, c->id);
  measure_case(program, c, options, a, &samples);
  if (a->rank == 0) {
    write_samples(options->out, c->id, &samples);
    fprintf(stderr, "case %d/%d %s median %.3f us, %d samples, %s\n", done, total, c->id, samples.median * 1e6,
            samples.nvalid, stop_name(samples.stop));
  }
  free_samples(&samples);
}

/* The remaining cases in the order of the file, for a program that measures several at a time. */
static void sweep_cases(const Program *program, const CaseFile *file, const unsigned char *finished,
                        const Options *options, const Alignment *a)
{
  Case *left = allocate((size_t)file->count, sizeof *left);
  int count = 0;
  for (int i = 0; i < file->count; i++)
    if (!finished[i]) left[count++] = file->cases[i];
  if (count > 0) program->sweep(left, count, options, a);
  free(left);
}

void finish_case(const Options *options, const Case *c, const double *seconds, const double *counted, int count)
{
  Samples samples = {0};
  grow_samples(&samples, count, counted ? WITH_COUNTS : 0);
  samples.count = count;
  for (int i = 0; i < count; i++) {
    samples.seconds[i] = seconds[i];
    samples.valid[i] = true;
    if (counted) samples.counted[i] = counted[i];
  }
  samples.stop = STOP_SAMPLES;
  write_samples(options->out, c->id, &samples);
  free_samples(&samples);
}

static void mpi_version(char text[static MPI_MAX_LIBRARY_VERSION_STRING])
{
  int length = 0;
  text[0] = '\0';
  MPI_TRY(MPI_Get_library_version(text, &length));
  text[strcspn(text, "\r\n")] = '\0';
}

int harness_main(int argc, char **argv, const Program *program)
{
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
    mpi_version(version);
    print_description_json(program, version);
    return 0;
  }
  char *wrong = bind_to_cores(argv, program->locate);
  end_with_starter();
  MPI_TRY(MPI_Init(&argc, &argv));
  MPI_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  Alignment a = {0};
  MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &a.rank));
  MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &a.ranks));
  unlink_shared_memory();
  mpi_version(version);

  /* Only rank 0 reports errors: the others enter the first collective after it has checked the command line. */
  if (a.rank != 0) MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
  Options options = read_options(argc, argv);
  check_binding(wrong, options.cores, a.rank);
  a.scheme = find_scheme(options.sync);
  if (!a.scheme) user_error("--sync: found '%s', wanted %s", options.sync, scheme_names());
  if (a.rank == 0) {
    if (options.placement) check_rank_count(options.placement, a.ranks);
    if (a.ranks < program->min_ranks)
      user_error("%s: found %d ranks, wanted at least %d", program->name, a.ranks, program->min_ranks);
    MPI_TRY(MPI_Barrier(MPI_COMM_WORLD));
    make_directory(options.out);
  }
  char *hosts = gather_hosts(a.rank, a.ranks), *cores = gather_cores(a.rank, a.ranks);
  if (a.rank == 0 && options.placement) check_placement(options.placement, hosts, a.ranks);
  CaseFile file = broadcast_cases(program, &options, &a);
  align_clocks(&a);
  char *computing = program->computing ? gather_computing(program->computing, a.rank, a.ranks, hosts) : NULL;
  const char *sync = program->timing == TIMED_BY_ROOT ? "round-trip" : a.scheme->name;
  if (a.rank == 0 && options.meta)
    write_meta(program, &options, &(RunDescription){version, a.ranks, hosts, cores, computing, sync, a.uncertainty});

  int *order = allocate((size_t)file.count, sizeof *order), done = 0;
  unsigned char *finished = find_finished(&file, options.out, a.rank);
  shuffle(order, file.count, (uint64_t)options.seed);
  for (int i = 0; i < file.count; i++) done += finished[i];
  if (program->sweep) sweep_cases(program, &file, finished, &options, &a);
  for (int i = 0; i < file.count && !program->sweep; i++)
    if (!finished[order[i]]) run_case(program, &file.cases[order[i]], &options, &a, ++done, file.count);

  if (a.rank == 0) remove_current_case(options.out);

  free(order);
  free(finished);
  free_cases(&file);
  free(hosts);
  free(cores);
  free(computing);
  MPI_TRY(MPI_Finalize());
  return 0;
}
