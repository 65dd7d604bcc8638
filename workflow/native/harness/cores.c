/* cores.c: binding of a process to its cores, with one thread for each.
 *
 * The process binds itself before MPI starts, independently of launcher and image. OpenMP and BLAS libraries read
 * OMP_NUM_THREADS when they are loaded, so the program is executed again with it. The rank comes from the launcher's
 * environment and is compared with MPI's after MPI_Init. The processes of a node share its cores in the order of ranks.
 * A rank that drives a GPU gets its number on the node as COMMODEL_DRIVES; only such ranks keep COMMODEL_ACCELERATOR. */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !COMMODEL_SIMULATED
/* A launcher within another one may inherit the variables of the outer one, so the more specific ones come first. */
static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
static const char executed[] = "COMMODEL_CORES_OF"; /* id of the process that is bound: exec does not change it */
enum { MAX_CPUS = 65536 };
static const size_t set_size = CPU_ALLOC_SIZE(MAX_CPUS);

typedef struct {
  long long thread, package, core; /* sort keys, in this order */
  int cpu;
} Cpu;

static long long read_topology(int cpu, const char *name)
{
  char path[128], text[64] = "";
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
  FILE *file = fopen(path, "r");
  if (!file) return -1; /* as in some virtual machines: CPUs are ordered by number */
  if (!fgets(text, sizeof text, file)) text[0] = '\0';
  fclose(file);
  return strtoll(text, NULL, 10);
}

static int compare_cpus(const void *one, const void *two)
{
  const Cpu *a = one, *b = two;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->package != b->package) return a->package < b->package ? -1 : 1;
  if (a->core != b->core) return a->core < b->core ? -1 : 1;
  return a->cpu - b->cpu;
}

/* All CPUs that this process may use: those of its job, not only those to which the launcher has bound it. The first
 * threads of all cores come before the second ones; cores of a socket are adjacent. */
static int list_cpus(Cpu **cpus)
{
  cpu_set_t *set = allocate(1, set_size);
  memset(set, 0xff, set_size);
  sched_setaffinity(0, set_size, set); /* the kernel ignores CPUs that are not allowed; a refusal has no effect */
  if (sched_getaffinity(0, set_size, set)) DIE("sched_getaffinity: %s", strerror(errno));
  int count = 0, most = CPU_COUNT_S(set_size, set);
  *cpus = allocate((size_t)most, sizeof **cpus);
  for (int cpu = 0; cpu < MAX_CPUS && count < most; cpu++)
    if (CPU_ISSET_S((size_t)cpu, set_size, set))
      (*cpus)[count++] = (Cpu){0, read_topology(cpu, "physical_package_id"), read_topology(cpu, "core_id"), cpu};
  free(set);
  qsort(*cpus, (size_t)count, sizeof **cpus, compare_cpus);
  for (int i = 1; i < count; i++) {
    const Cpu *last = &(*cpus)[i - 1], *own = &(*cpus)[i];
    bool same = own->core >= 0 && own->core == last->core && own->package == last->package;
    (*cpus)[i].thread = same ? last->thread + 1 : 0;
  }
  qsort(*cpus, (size_t)count, sizeof **cpus, compare_cpus);
  return count;
}

/* Errors before MPI_Init are reported after it, since the other ranks would wait for a process that ends now. */
static char *format_error(const char *format, ...)
{
  enum { ROOM = 1024 };
  char *text = allocate(ROOM, 1);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, ROOM, format, arguments);
  va_end(arguments);
  return text;
}

/* -1: unknown. */
static int find_launcher_rank(void)
{
  for (size_t i = 0; i < sizeof rank_names / sizeof *rank_names; i++) {
    const char *text = getenv(rank_names[i]);
    long long rank;
    if (text && parse_integer(text, &rank) && rank >= 0 && rank < INT32_MAX) return (int)rank;
  }
  return -1;
}

/* The cores of a rank: of those of its node, without the ones of lower ranks there. */
typedef struct {
  long long node, first, count;
  int gpu; /* its number on the node; -1: none */
} Share;

/* A line: the node of a rank, the number of its cores, and gpu if it drives one. */
static bool parse_share(char *line, Share *share)
{
  char *second = line ? strchr(line, ' ') : NULL;
  if (!second) return false;
  *second++ = '\0';
  char *third = strchr(second, ' ');
  if (third) *third++ = '\0';
  *share = (Share){.gpu = third ? 0 : -1};
  return (!third || strcmp(third, "gpu") == 0) && parse_integer(line, &share->node) && share->node >= 0 &&
         parse_integer(second, &share->count) && share->count >= 1 && share->count <= MAX_CPUS;
}

/* Returns the number of the line that is wrong, or 0. */
static int read_share(const char *path, int rank, Share *own)
{
  char *text = read_text(path, "file of cores"), *cursor = text;
  Share *shares = allocate((size_t)rank + 1, sizeof *shares);
  int wrong = 0;
  for (int r = 0; r <= rank && !wrong; r++)
    if (!parse_share(next_line(&cursor), &shares[r])) wrong = r + 1;
  *own = shares[rank];
  for (const Share *lower = shares; lower < shares + rank && !wrong; lower++) {
    if (lower->node != own->node) continue;
    own->first += lower->count;
    own->gpu += own->gpu >= 0 && lower->gpu >= 0;
  }
  free(shares);
  free(text);
  return wrong;
}

char *bind_to_cores(char **argv)
{
  const char *path = NULL, *mark = getenv(executed);
  char own[32], threads[32], gpu[32];
  for (char **word = argv; *word; word++)
    if (strcmp(*word, "--cores") == 0) path = word[1];
  snprintf(own, sizeof own, "%ld", (long)getpid());
  if (!path || (mark && strcmp(mark, own) == 0)) return NULL;
  int rank = find_launcher_rank();
  if (rank < 0) return format_error("the launcher sets no environment variable with the rank, so cores cannot be assigned");
  Share share;
  int wrong = read_share(path, rank, &share);
  if (wrong) return format_error("%s:%d: wanted the node of rank %d and the number of its cores", path, wrong, wrong - 1);
  Cpu *cpus;
  int count = list_cpus(&cpus);
  if (share.first + share.count > count)
    return format_error("rank %d needs cores %lld to %lld of its node, but only %d are available", rank, share.first,
                     share.first + share.count - 1, count);
  cpu_set_t *set = allocate(1, set_size);
  for (int i = 0; i < share.count; i++) CPU_SET_S((size_t)cpus[share.first + i].cpu, set_size, set);
  if (sched_setaffinity(0, set_size, set)) DIE("rank %d cannot be bound to its cores: %s", rank, strerror(errno));
  snprintf(threads, sizeof threads, "%lld", share.count);
  snprintf(gpu, sizeof gpu, "%d", share.gpu);
  if (share.gpu >= 0 ? setenv("COMMODEL_DRIVES", gpu, 1) : unsetenv("COMMODEL_ACCELERATOR")) DIE("setenv: %s", strerror(errno));
  if (setenv("OMP_NUM_THREADS", threads, 1) || setenv(executed, own, 1)) DIE("setenv: %s", strerror(errno));
  execv("/proc/self/exe", argv);
  DIE("/proc/self/exe cannot be executed: %s", strerror(errno));
}

void check_binding(char *wrong, const char *path, int rank)
{
  if (wrong) user_error("%s", wrong);
  int launcher_rank = path ? find_launcher_rank() : rank;
  if (launcher_rank != rank) DIE("rank %d is bound to the cores of rank %d, its rank in the launcher's environment", rank, launcher_rank);
}

/* 0-5,12 */
static void format_cores(char *text, size_t capacity)
{
  cpu_set_t *set = allocate(1, set_size);
  size_t used = 0;
  text[0] = '\0';
  if (sched_getaffinity(0, set_size, set) == 0)
    for (size_t cpu = 0; cpu < MAX_CPUS && used < capacity; cpu++) {
      if (!CPU_ISSET_S(cpu, set_size, set)) continue;
      size_t last = cpu;
      while (last + 1 < MAX_CPUS && CPU_ISSET_S(last + 1, set_size, set)) last++;
      const char *comma = used ? "," : "";
      used += (size_t)(last > cpu ? snprintf(text + used, capacity - used, "%s%zu-%zu", comma, cpu, last)
                                  : snprintf(text + used, capacity - used, "%s%zu", comma, cpu));
      cpu = last;
    }
  free(set);
}

char *gather_cores(int rank, int ranks)
{
  char own[CORES_BYTES];
  format_cores(own, sizeof own);
  char *cores = rank == 0 ? allocate((size_t)ranks, CORES_BYTES) : NULL;
  MPI_TRY(MPI_Gather(own, CORES_BYTES, MPI_CHAR, cores, CORES_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD));
  return cores;
}
#else
/* Simulated nodes have no real cores. */
char *bind_to_cores(char **argv) { return (void)argv, NULL; }
void check_binding(char *wrong, const char *path, int rank) { (void)wrong, (void)path, (void)rank; }
char *gather_cores(int rank, int ranks) { return (void)rank, (void)ranks, NULL; }
#endif
