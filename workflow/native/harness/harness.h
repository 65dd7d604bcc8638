/* harness.h: everything a native program of commodel shares.
 *
 * A program is a table (struct Program): its columns, and functions that prepare one case, run one pass of it and
 * clean up. The harness owns the rest: options, the case file, the clock, how ranks are aligned before a sample,
 * warm-up, when to stop, and the files that come out. A program's main() is one call of harness_main().
 *
 * No mutable globals anywhere: under SimGrid all ranks are threads of one process.
 */
#ifndef COMMODEL_HARNESS_H
#define COMMODEL_HARNESS_H

#include <mpi.h>
#if defined MPICH_VERSION && defined __GNUC__ && !defined __clang__
/* MPICH 4.0 declares statuses as an array, for which gcc finds no room at the address 1, its MPI_STATUSES_IGNORE. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* smpicc's <mpi.h> includes <smpi/smpi.h>, whose include guard tells that time is simulated. */
#ifdef SMPI_H
#define COMMODEL_SIMULATED 1
#else
#define COMMODEL_SIMULATED 0
#endif

/* ---- errors.c: no error is survived; what the user did wrong takes one line ---- */
_Noreturn void harness_die(const char *file, int line, const char *format, ...);
_Noreturn void user_error(const char *format, ...);
#define DIE(...) harness_die(__FILE__, __LINE__, __VA_ARGS__)
#define MPI_TRY(call)                                                                                                  \
  do {                                                                                                                 \
    int mpi_code_ = (call);                                                                                            \
    if (mpi_code_ != MPI_SUCCESS) harness_die_mpi(__FILE__, __LINE__, #call, mpi_code_);                               \
  } while (0)
_Noreturn void harness_die_mpi(const char *file, int line, const char *call, int code);
void *allocate(size_t count, size_t size); /* zeroed, never NULL, count 0 is legal */

/* ---- buffers.c: free() them ---- */
char *allocate_buffer(size_t count, size_t size); /* on pages of its own, all touched; never NULL, 0 is legal */

/* ---- clock.c: seconds; simulated ones under SimGrid ---- */
double clock_now(void);
double clock_wait(double seconds); /* returns how long it really was */
void clock_wait_until(double when);
double clock_resolution(void);
/* Doubles *repeats until `pass`, which repeats by it, lasts well above the resolution; not where time is simulated. */
void calibrate_repeats(int *repeats, void (*pass)(void *state), void *state);

/* ---- text.c: whole files, strict numbers, JSON strings ---- */
char *read_text(const char *path, const char *what); /* dies by user_error when it cannot */
char *next_line(char **cursor);                      /* cuts one line off, NULL at the end */
int split_fields(char *line, char **fields, int most); /* at commas; the number found, also when above most */
bool parse_integer(const char *text, long long *value);
bool parse_real(const char *text, double *value); /* finite only */
void write_json_string(FILE *file, const char *text);
FILE *open_partial(const char *path, char **partial);                /* DIR/.<name>.tmp */
void commit_partial(FILE *file, char *partial, const char *path); /* flush, close, rename, free */

/* ---- options.c ---- */
typedef struct {
  const char *cases, *out, *meta, *placement, *sync;
  double precision, max_seconds;
  long long min_samples, max_samples, warmup, seed;
} Options;
Options read_options(int argc, char **argv); /* dies by user_error */
void write_options_json(FILE *file, const Options *options);

/* ---- cases.c: the case file ---- */
typedef enum { COUNT, BYTES, NUMBER, WORD } ColumnKind; /* integer >= 0, integer that MPI can count, real >= 0, text */
typedef struct {
  const char *name, *unit, *meaning;
  ColumnKind kind;
} Column;
typedef struct {
  char *text;
  long long count; /* COUNT, BYTES */
  double real;     /* NUMBER */
} Field;
typedef struct {
  const char *file;
  int line;
  char *id;
  Field *fields; /* one per column of the program, in the program's order */
} Case;
typedef struct {
  char *text;
  Case *cases;
  int count;
} CaseFile;
CaseFile parse_cases(const char *path, char *text, const Column *columns, int ncolumns); /* takes text over */
void free_cases(CaseFile *file);
_Noreturn void case_error(const Case *c, const char *column, const char *found, const char *wanted);
void require_ranks(const Case *c, const char *column, long long needed, int ranks);
void shuffle(int *order, int n, uint64_t seed); /* splitmix64 Fisher-Yates; seed 0 keeps the order */

/* ---- stopping.c: when is the median known well enough ---- */
enum { STOPPING_LEAST = 6 }; /* fewer samples have no 95 % order-statistics interval of the median */
int median_rank(int n);      /* 1-based rank k: [x(k), x(n+1-k)] holds the median with >= 95 %; 0 when none does */
double median_sorted(const double *sorted, int n);
bool median_is_precise(const double *sorted, int n, double precision);
void sort_doubles(double *values, int n);

/* ---- align.c: how ranks are brought to a common start ---- */
typedef struct Scheme Scheme;
/* LATE_START: waiting in time, but not running when the window opened (preempted); ranks agree on the worst. */
typedef enum { IN_TIME, LATE_START, LATE_ARRIVAL } Late;
typedef struct {
  const Scheme *scheme;
  int rank, ranks;
  double offset;      /* this rank's clock minus rank 0's */
  double uncertainty; /* largest over the ranks: half of the smallest round trip */
  double synced;      /* when the offset was estimated, own clock */
  double origin;      /* window: start of the chunk's first sample, rank 0's clock */
  double window;      /* window: from one start to the next */
  double lead;        /* window: from agreeing on origin to origin */
  double slack;       /* window: its length over that of a pass */
} Alignment;
struct Scheme {
  const char *name, *meaning;
  void (*begin)(Alignment *a);        /* collective, once a chunk */
  Late (*align)(Alignment *a, int i); /* before sample i */
  bool starts_at_window;              /* the common start is the window's, else the earliest stamp */
};
const Scheme *find_scheme(const char *name); /* NULL when there is none */
const char *scheme_names(void);
void align_clocks(Alignment *a); /* collective */
void align_ready(void);          /* collective: rank 0 returns only after every other rank has entered */

/* ---- program ---- */
typedef struct {
  int rank, ranks;
  bool takes_part; /* idle ranks neither stamp nor count for lateness; true unless prepare says otherwise */
  int finish;      /* rank whose end is the end, or -1: the last of all */
  int repeats;     /* how often one pass repeats the thing; a sample is divided by it */
  double waited;   /* set by a pass: delays that were part of it and are taken off its time */
  double counted;  /* set by a pass on rank 0, by programs that count: how many of the things came about */
} Run;
typedef enum { ROOT_ALONE, ALL_TOGETHER } Timing; /* who holds the watch */
typedef struct {
  const char *name, *title, *kind;
  const Column *columns;
  int ncolumns, min_ranks;
  Timing timing;
  bool counts;                                  /* every sample has a count too */
  void (*check)(const Case *c, int ranks);      /* rank 0, every case before the first sample; dies by case_error */
  void *(*prepare)(const Case *c, Run *run);    /* collective; everything that must not be timed */
  void (*first_pass)(void *state);              /* optional: the first warm-up pass, with payload check */
  void (*arm)(void *state);                     /* optional: post receives before ranks are aligned */
  void (*pass)(void *state);                    /* what is timed */
  void (*cleanup)(void *state);
} Program;
int harness_main(int argc, char **argv, const Program *program);

/* ---- measure.c ---- */
typedef enum { STOP_NONE, STOP_PRECISION, STOP_SAMPLES, STOP_TIME } Stop;
const char *stop_name(Stop stop);
typedef struct {
  double *seconds, *skew, *counted; /* skew NULL when ranks are not aligned, counted when nothing is counted */
  bool *valid;
  int count, room;
  double median; /* of the valid samples; NaN when there is none */
  int nvalid;
  Stop stop;
} Samples;
void measure_case(const Program *program, const Case *c, const Options *options, Alignment *alignment,
                  Samples *samples); /* collective; samples are filled on rank 0 */

/* ---- sink.c: one finished case, one file ---- */
char *sample_path(const char *dir, const char *id);
void make_directory(const char *dir);
void write_samples(const char *dir, const char *id, const Samples *samples);

/* ---- describe.c, placement.c: provenance ---- */
void describe(const Program *program);
void write_meta(const Program *program, const Options *options, const Alignment *alignment, const char *hosts);
enum { HOST_ROOM = MPI_MAX_PROCESSOR_NAME + 64 };
char *gather_hosts(int rank, int ranks); /* rank 0: ranks names of HOST_ROOM bytes each; NULL elsewhere */
void check_world(const char *path, int ranks); /* as many ranks as the placement file has lines */
void check_placement(const char *path, const char *hosts, int ranks);

/* ---- sharednames.c: so that nothing is left in /dev/shm of ranks that are killed ---- */
void drop_shared_names(void); /* collective, right after MPI_Init */

/* ---- star.c: who exchanges messages with a rank when rank 0 does with ranks 1..n ---- */
MPI_Group star_partners(int rank, int n); /* the caller frees it */

/* ---- localwork.c: what a rank does alone; one code for the probe and the player ---- */
void add_doubles(double *sum, const double *addend, size_t count);
void copy_bytes(void *to, const void *from, size_t bytes);

#endif
