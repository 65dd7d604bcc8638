/* describe.c: what a program is (--describe) and how it was run (--meta), as JSON. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined __clang__
#define COMPILER_NAME "clang "
#elif defined __GNUC__
#define COMPILER_NAME "gcc "
#else
#define COMPILER_NAME ""
#define __VERSION__ "unknown"
#endif
static const char compiler[] = COMMODEL_MPICC " (" COMPILER_NAME __VERSION__ ")";
static const char flags[] = COMMODEL_FLAGS;

static void write_member(FILE *file, const char *name, const char *text, const char *after)
{
  fprintf(file, "  \"%s\": ", name);
  write_json_string(file, text);
  fprintf(file, "%s\n", after);
}

void print_description_json(const Program *program, const char *substrate)
{
  puts("{");
  write_member(stdout, "name", program->name, ",");
  write_member(stdout, "title", program->title, ",");
  write_member(stdout, "kind", program->kind, ",");
  fputs("  \"columns\": [", stdout);
  for (int k = 0; k < program->ncolumns; k++) {
    fprintf(stdout, "%s\n    {\"name\": ", k ? "," : "");
    write_json_string(stdout, program->columns[k].name);
    fputs(", \"unit\": ", stdout);
    write_json_string(stdout, program->columns[k].unit);
    fputs(", \"meaning\": ", stdout);
    write_json_string(stdout, program->columns[k].meaning);
    fputs("}", stdout);
  }
  printf("\n  ],\n  \"min_ranks\": %d,\n  \"counts\": %s,\n  \"streams\": %s,\n", program->min_ranks,
         program->counts ? "true" : "false", program->streams ? "true" : "false");
  write_member(stdout, "compiler", compiler, ",");
  write_member(stdout, "flags", flags, ",");
  write_member(stdout, "mpi", substrate, "");
  puts("}");
  fflush(stdout);
}

/* One text of each rank, in `capacity` bytes. */
static void write_texts(FILE *file, const char *name, const char *texts, size_t capacity, int ranks)
{
  fprintf(file, "  \"%s\": [", name);
  for (int r = 0; r < ranks; r++) {
    if (r) fputs(", ", file);
    write_json_string(file, texts + (size_t)r * capacity);
  }
  fputs("],\n", file);
}

void write_meta(const Program *program, const Options *options, const RunDescription *run)
{
  char *partial;
  FILE *file = open_partial(options->meta, &partial);
  fputs("{\n", file);
  write_member(file, "program", program->name, ",");
  fprintf(file, "  \"ranks\": %d,\n", run->ranks);
  write_texts(file, "hosts", run->hosts, HOST_BYTES, run->ranks);
  if (run->cores) write_texts(file, "cores", run->cores, CORES_BYTES, run->ranks);
  if (!COMMODEL_SIMULATED) fprintf(file, "  \"processors\": %ld,\n", sysconf(_SC_NPROCESSORS_ONLN));
  write_member(file, "mpi", run->substrate, ",");
  write_member(file, "compiler", compiler, ",");
  write_member(file, "flags", flags, ",");
  write_member(file, "clock", COMMODEL_SIMULATED ? "simulated" : "CLOCK_MONOTONIC", ",");
  fprintf(file, "  \"simulated\": %s,\n", COMMODEL_SIMULATED ? "true" : "false");
  if (run->computing) write_member(file, "computing", run->computing, ",");
  write_member(file, "sync", run->sync, ",");
  fprintf(file, "  \"clock_resolution\": %.9e,\n", clock_resolution());
  if (isfinite(run->uncertainty)) fprintf(file, "  \"clock_uncertainty\": %.9e,\n", run->uncertainty);
  fprintf(file, "  \"seed\": %lld,\n  \"options\": {", options->seed);
  write_options_json(file, options);
  fputs("\n  }\n}\n", file);
  commit_partial(file, partial, options->meta);
}
