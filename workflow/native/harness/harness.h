/* harness.h: the common code of commodel's native programs.
 *
 * A program is a table (struct Program): its columns, and functions that prepare one case, run one pass of it and
 * clean up. The harness does the rest: options, the case file, the clock, the alignment of ranks before a sample,
 * warm-up, the stopping rule, and the output files. A program's main() is one call of harness_main().
 *
 * No mutable globals anywhere: under SimGrid all ranks are threads of one process.
 */
#ifndef COMMODEL_HARNESS_H
#define COMMODEL_HARNESS_H

/* A program without ranks is compiled with COMMODEL_WITHOUT_MPI, and only with the parts that need no MPI. */
#ifndef COMMODEL_WITHOUT_MPI
#include <mpi.h>
#endif
#if defined MPICH_VERSION && defined __GNUC__ && !defined __clang__
/* MPICH 4.0 declares statuses as an array, and gcc warns that its MPI_STATUSES_IGNORE, the address 1, is too small. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* smpicc's <mpi.h> includes <smpi/smpi.h>, whose include guard shows that time is simulated. */
#ifdef SMPI_H
#define COMMODEL_SIMULATED 1
#else
#define COMMODEL_SIMULATED 0
#endif

/* ---- errors.c: every error ends the program; a user's mistake is reported in one line ---- */
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
char *allocate_buffer(size_t count, size_t size); /* starts on a page; all bytes are written; never NULL, count 0 is legal */

/* ---- clock.c: seconds; simulated ones under SimGrid ---- */
double clock_now(void);
double clock_wait(double seconds); /* returns the actual length */
void clock_wait_until(double when);
double clock_resolution(void);
/* Doubles *repeats until `pass`, which repeats its work that often, is much longer than the resolution; not in simulated time. */
void calibrate_repeats(int *repeats, void (*pass)(void *state), void *state);

/* ---- text.c: whole files, strict numbers, JSON strings ---- */
char *read_text(const char *path, const char *what); /* ends with user_error if it cannot */
char *next_line(char **cursor);                      /* cuts one line off, NULL at the end */
int split_fields(char *line, char **fields, int capacity); /* at commas; returns the number of fields, which may exceed `capacity` */
bool parse_integer(const char *text, long long *value);
bool parse_real(const char *text, double *value); /* finite only */
void write_json_string(FILE *file, const char *text);
bool same_host(const char *name, const char *host); /* also if only one name has its domain */
FILE *open_partial(const char *path, char **partial);                /* DIR/.<name>.tmp */
void commit_partial(FILE *file, char *partial, const char *path); /* flush, close, rename, free */

/* ---- options.c ---- */
typedef struct {
  const char *cases, *out, *meta, *placement, *cores;
  const char *sync; /* name of a Scheme */
  double precision, max_seconds;
  long long min_samples, max_samples, warmup, seed;
  long long enough_equal; /* this many equal first samples are enough; 0: never */
} Options;
Options read_options(int argc, char **argv); /* ends with user_error */
void write_options_json(FILE *file, const Options *options);

/* ---- cases.c: the case file ---- */
typedef enum { COUNT, BYTES, NUMBER, WORD } ColumnKind; /* integers from 0 to INT_MAX, real >= 0, text that is not empty */
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
  int waves;     /* passes of one sample; 1 if the file has no such column */
} Case;
typedef struct {
  char *text;
  Case *cases;
  int count;
} CaseFile;
/* Takes ownership of the text; `streams`: the file may have the column waves. */
CaseFile parse_cases(const char *path, char *text, const Column *columns, int ncolumns, bool streams);
void free_cases(CaseFile *file);
_Noreturn void case_error(const Case *c, const char *column, const char *found, const char *wanted);
void require_ranks(const Case *c, const char *column, long long needed, int ranks);
void shuffle(int *order, int n, uint64_t seed); /* splitmix64 Fisher-Yates; seed 0 keeps the order */

/* ---- stopping.c: whether the confidence interval of the median is narrow enough ---- */
enum { MIN_SAMPLES_TO_STOP = 6 }; /* fewer samples have no 95 % order-statistics interval of the median */
int median_rank(int n);      /* 1-based rank k: [x(k), x(n+1-k)] covers the median with >= 95 %; 0: none does */
double median_sorted(const double *sorted, int n);
bool median_is_precise(const double *sorted, int n, double precision);
void sort_doubles(double *values, int n);

/* ---- align.c: alignment of ranks before a sample. Chunk: samples taken without a decision of rank 0 in between ---- */
typedef struct Scheme Scheme;
/* Of a rank in a sample. LATE_START: it arrived in time, but was preempted when the window opened. The ranks' maximum
 * is that of the sample. */
typedef enum { IN_TIME, LATE_START, LATE_ARRIVAL } Lateness;
typedef struct {
  const Scheme *scheme;
  int rank, ranks;
  double offset;      /* this rank's clock minus rank 0's */
  double uncertainty; /* largest over the ranks: half of the smallest round trip */
  double synced;      /* when the offset was estimated, by this rank's clock */
  double origin;      /* window: start of the chunk's first sample, rank 0's clock */
  double window;      /* window: from one start to the next */
  double lead;        /* window: seconds from the broadcast of the origin to the origin */
  double slack;       /* window: its length in units of a sample's passes */
} Alignment;
struct Scheme {
  const char *name, *meaning;
  void (*begin)(Alignment *a);        /* collective, once a chunk */
  Lateness (*align)(Alignment *a, int i); /* before sample i */
  void (*end)(const Alignment *a, int samples); /* after the last of the chunk's samples */
  bool starts_at_window;              /* a sample starts with the window; else at the ranks' earliest stamp */
};
const Scheme *find_scheme(const char *name); /* NULL when there is none */
const char *scheme_names(void);
void align_clocks(Alignment *a); /* collective */
void wait_until_all_ready(void);          /* collective: rank 0 returns only after every other rank has entered */
/* Collective alignment by the scheme, for a pass that measures time itself. `lead`: as in Alignment. */
Lateness align_pass(Alignment *a, double lead);

/* ---- window.c ---- */
void init_window(Alignment *a, double sample); /* sample: estimated seconds of a sample's passes */
/* Rank 0: sets the next window from the durations of a chunk's n samples, which it sorts. late: number of late samples;
 * first_late: the chunk's first sample was late. */
void fit_window(Alignment *a, double *durations, int n, int late, bool first_late);

/* ---- starter.c ---- */
void end_with_starter(void); /* before MPI_Init */

/* ---- program ---- */
typedef struct {
  int rank, ranks;
  bool participates; /* idle ranks neither stamp nor count as late; true by default */
  int finish;        /* the sample ends when this rank ends; -1: when all have ended */
  int repeats;       /* repetitions in one pass; a sample of one wave is divided by it */
  int waves, wave;   /* successive passes of one sample, without alignment between them; the current one */
  double excluded;   /* set by a pass: seconds of delays that are subtracted from its time */
  double counted;    /* set by a pass on rank 0, in programs that count: number of events */
  Alignment *alignment; /* for a pass that measures time itself, and then sets on rank 0: */
  double seconds, computation; /* the sample, and its computation; NaN if there is none */
  Lateness late;
} Run;
typedef enum { TIMED_BY_ROOT, TIMED_BY_HARNESS, TIMED_BY_PASS } Timing; /* who measures time: rank 0, the harness, or the pass */
typedef struct {
  const char *name, *title;
  const char *kind; /* "probe", "player", "kernel" or "overlay" */
  const Column *columns;
  int ncolumns, min_ranks;
  Timing timing;
  bool counts;                                  /* every sample also has a count */
  bool streams;                                 /* its passes may be waves of a stream */
  bool computes;                                /* every sample also has a time of computation */
  /* Of such a program: writes the device of the rank, or why there is none, to COMPUTING_BYTES bytes. */
  bool (*computing)(char *text);
  /* Optional: writes the address on the PCI bus of a GPU of this node, such as 0000:3b:00.0, if it is known. */
  bool (*locate)(int gpu, char *address);
  void (*check)(const Case *c, int ranks);      /* rank 0, for every case before the first sample; ends with case_error */
  void *(*prepare)(const Case *c, Run *run);    /* collective; untimed preparation */
  void (*first_pass)(void *state);              /* optional: the first warm-up pass, with payload check */
  void (*before_alignment)(void *state);                     /* optional: post receives before ranks are aligned */
  void (*pass)(void *state);                    /* the timed part */
  void (*cleanup)(void *state);
  /* Instead of all functions from prepare on, for a program that measures several cases at a time; collective. */
  void (*sweep)(const Case *cases, int count, const Options *options, const Alignment *alignment);
} Program;
int harness_main(int argc, char **argv, const Program *program);
/* Rank 0 of a program with `sweep`: writes all samples of a case. `counted` is NULL in programs that do not count. */
void finish_case(const Options *options, const Case *c, const double *seconds, const double *counted, int samples);

/* ---- measure.c ---- */
typedef enum { STOP_NONE, STOP_EQUAL, STOP_PRECISION, STOP_SAMPLES, STOP_TIME } Stop;
const char *stop_name(Stop stop);
typedef struct {
  double *seconds, *skew, *counted; /* skew is NULL without alignment, counted without counts */
  double *cpu;                      /* processor seconds of a wave, all processes; NULL if unknown */
  double *computation;              /* seconds of computation of a sample; NULL without computation */
  double *first, *last;             /* latencies of these waves, NaN if clocks are too uncertain; NULL with one wave */
  bool *valid;
  int count, capacity;
  double median; /* of the valid samples; NaN if there are none */
  int nvalid;
  Stop stop;
} Samples;
void measure_case(const Program *program, const Case *c, const Options *options, Alignment *alignment,
                  Samples *samples); /* collective; samples are filled on rank 0 */

/* ---- budget.c: limits of samples and time ---- */
enum { WITH_SKEW = 1, WITH_COUNTS = 2, WITH_CPU = 4, WITH_LATENCIES = 8, WITH_COMPUTATION = 16 };
void grow_samples(Samples *samples, int count, int with); /* memory for `count` samples */
void free_samples(Samples *samples);
/* Why to stop after `spent` seconds, or STOP_NONE. Sets the median and the number of valid samples; after equal ones,
 * only those that were enough are left. */
Stop choose_stop(const Options *options, Samples *samples, double spent);
/* Number of samples of the next chunk. estimate: seconds of one sample. last_differs: the last sample of a chunk may
 * differ, as it shares the network with the exchange of stamps. */
int next_chunk(const Options *options, const Samples *samples, double estimate, double spent, bool last_differs);

/* ---- sink.c: one file for each finished case, and the current case ---- */
char *sample_path(const char *dir, const char *id);
void make_directory(const char *dir);
void write_samples(const char *dir, const char *id, const Samples *samples);
bool is_finished(const char *dir, const char *id); /* whether its file of samples exists */
void record_current_case(const char *dir, const char *id);
void remove_current_case(const char *dir);

/* ---- describe.c, placement.c: provenance ---- */
typedef struct {
  const char *substrate; /* transport of messages, and its version */
  int ranks;
  const char *hosts; /* of each rank, HOST_BYTES bytes */
  const char *cores; /* of each rank, CORES_BYTES bytes; NULL in simulated time and without MPI */
  const char *computing; /* what the ranks compute with; NULL if they only communicate */
  const char *sync; /* name of a Scheme; else a text: "round-trip" if rank 0 measures time */
  double uncertainty;
} RunDescription;
void print_description_json(const Program *program, const char *substrate);
void write_meta(const Program *program, const Options *options, const RunDescription *run);
#ifdef COMMODEL_WITHOUT_MPI
enum { HOST_BYTES = 320, CORES_BYTES = 256, COMPUTING_BYTES = 640, ADDRESS_BYTES = 32 };
#else
enum { HOST_BYTES = MPI_MAX_PROCESSOR_NAME + 64, CORES_BYTES = 256, COMPUTING_BYTES = 640, ADDRESS_BYTES = 32 };
char *gather_hosts(int rank, int ranks); /* rank 0: ranks names of HOST_BYTES bytes each; NULL elsewhere */
void check_rank_count(const char *path, int ranks); /* against the lines of the placement file */
void check_placement(const char *path, const char *hosts, int ranks);

/* ---- cores.c: --cores, a file with a line for each rank: its node, the number of its cores, and gpu:N if it drives GPU N of the node ---- */
/* Before MPI_Init: executes the program again; or returns an error for check_binding. `locate`: as in Program. */
char *bind_to_cores(char **argv, bool (*locate)(int gpu, char *address));
void check_binding(char *wrong, const char *path, int rank);
/* Binds this process, the `number`-th of those of its node, to a core: first those of one socket. Returns the socket; -1 if it
 * is unknown, or there are fewer cores than processes, which are not bound then. */
int bind_to_core(int number, int processes);
char *gather_cores(int rank, int ranks); /* rank 0: cores that each rank may use, CORES_BYTES bytes; NULL elsewhere, and in simulated time */

/* ---- sharing.c: which CPUs of a node each of its processes gets ---- */
typedef struct {
  long long node, count; /* of CPUs; 0: none of its own */
  int gpu;               /* its number on the node; -1: none */
  const bool *near;      /* of each CPU, whether it is next to the GPU; NULL: unknown */
} Share;
bool parse_share(char *line, Share *share); /* a node, a number of cores, and gpu:N if it drives one */
bool *read_near_cpus(const char *devices, const char *address, const int *cpus, int count); /* NULL: unknown */
void share_cpus(const Share *shares, int processes, int *owners, int cpus); /* owners: of each CPU, a process or -1. A
 * process without a CPU shares those of the others */

/* ---- computing.c: with what each rank computes ---- */
/* Collective. Rank 0: such as `ranks 0-2: TEXT; rank 3: TEXT`, in simulated time a text alone; NULL elsewhere. Ends with user_error if a rank has no device. */
char *gather_computing(bool (*computing)(char *text), int rank, int ranks, const char *hosts);

/* ---- sharednames.c: unlinks shared memory, so that killed ranks leave no files in /dev/shm ---- */
void unlink_shared_memory(void); /* collective, right after MPI_Init */

/* ---- star.c: partners of a rank when rank 0 exchanges messages with ranks 1..n ---- */
MPI_Group star_partners(int rank, int n); /* the caller frees it */
#endif

/* ---- localwork.c: local work, the same code for the probe and the player ---- */
void add_doubles(double *sum, const double *addend, size_t count);
void copy_bytes(void *to, const void *from, size_t bytes);

#endif
