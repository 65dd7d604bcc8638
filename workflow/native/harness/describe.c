/* describe.c: what a program is (--describe) and how it was run (--meta), as JSON. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)
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

static void mpi_version(char text[static MPI_MAX_LIBRARY_VERSION_STRING])
{
  int length = 0;
  text[0] = '\0';
  MPI_TRY(MPI_Get_library_version(text, &length));
  text[strcspn(text, "\r\n")] = '\0';
}

void describe(const Program *program)
{
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  mpi_version(version);
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
  printf("\n  ],\n  \"min_ranks\": %d,\n  \"counts\": %s,\n", program->min_ranks, program->counts ? "true" : "false");
  write_member(stdout, "compiler", compiler, ",");
  write_member(stdout, "flags", flags, ",");
  write_member(stdout, "mpi", version, "");
  puts("}");
  fflush(stdout);
}

void write_meta(const Program *program, const Options *options, const Alignment *alignment, const char *hosts)
{
  char version[MPI_MAX_LIBRARY_VERSION_STRING], *partial;
  mpi_version(version);
  FILE *file = open_partial(options->meta, &partial);
  fputs("{\n", file);
  write_member(file, "program", program->name, ",");
  fprintf(file, "  \"ranks\": %d,\n  \"hosts\": [", alignment->ranks);
  for (int r = 0; r < alignment->ranks; r++) {
    if (r) fputs(", ", file);
    write_json_string(file, hosts + (size_t)r * HOST_ROOM);
  }
  fputs("],\n", file);
  write_member(file, "mpi", version, ",");
  write_member(file, "compiler", compiler, ",");
  write_member(file, "flags", flags, ",");
  write_member(file, "clock", COMMODEL_SIMULATED ? "simulated" : "CLOCK_MONOTONIC", ",");
  fprintf(file, "  \"simulated\": %s,\n", COMMODEL_SIMULATED ? "true" : "false");
  write_member(file, "sync", program->timing == ROOT_ALONE ? "round-trip" : alignment->scheme->name, ",");
  fprintf(file, "  \"clock_resolution\": %.9e,\n", clock_resolution());
  fprintf(file, "  \"clock_uncertainty\": %.9e,\n", alignment->uncertainty);
  fprintf(file, "  \"seed\": %lld,\n  \"options\": {", options->seed);
  write_options_json(file, options);
  fputs("\n  }\n}\n", file);
  commit_partial(file, partial, options->meta);
}
