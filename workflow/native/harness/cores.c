/* cores.c: binding of a process to its cores, with one thread for each.
 *
 * The process binds itself before MPI starts, independently of launcher and image. OpenMP and BLAS libraries read
 * OMP_NUM_THREADS when they are loaded, so the program is executed again with it. The rank comes from the launcher's
 * environment and is compared with MPI's after MPI_Init. Only ranks that drive an accelerator (kernels/accelerator.h)
 * get its environment variable. */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !COMMODEL_SIMULATED
/* Some launchers keep the variables of an outer one, so the more specific ones come first. */
static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
static const char executed[] = "COMMODEL_CORES_OF"; /* the process that has its cores: exec leaves its number alone */
enum { MOST_CPUS = 65536 };
static const size_t set_size = CPU_ALLOC_SIZE(MOST_CPUS);

typedef struct {
  long long thread, package, core; /* in the order in which neighbours share most */
  int cpu;
} Cpu;

static long long topology(int cpu, const char *what)
{
  char path[128], text[64] = "";
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
  FILE *file = fopen(path, "r");
  if (!file) return -1; /* as in some virtual machines: CPUs are ordered by number */
  if (!fgets(text, sizeof text, file)) text[0] = '\0';
  fclose(file);
  return strtoll(text, NULL, 10);
}

static int by_place(const void *one, const void *two)
{
  const Cpu *a = one, *b = two;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->package != b->package) return a->package < b->package ? -1 : 1;
  if (a->core != b->core) return a->core < b->core ? -1 : 1;
  return a->cpu - b->cpu;
}

/* All CPUs that this process may have: those of its job, not only those that its launcher has bound it to. One thread of
 * every core comes before any second one; cores of a socket are neighbours. */
static int list_cpus(Cpu **cpus)
{
  cpu_set_t *set = allocate(1, set_size);
  memset(set, 0xff, set_size);
  sched_setaffinity(0, set_size, set); /* the kernel leaves out what is not allowed; if it refuses, nothing changes */
  if (sched_getaffinity(0, set_size, set)) DIE("sched_getaffinity: %s", strerror(errno));
  int count = 0, most = CPU_COUNT_S(set_size, set);
  *cpus = allocate((size_t)most, sizeof **cpus);
  for (int cpu = 0; cpu < MOST_CPUS && count < most; cpu++)
    if (CPU_ISSET_S((size_t)cpu, set_size, set))
      (*cpus)[count++] = (Cpu){0, topology(cpu, "physical_package_id"), topology(cpu, "core_id"), cpu};
  free(set);
  qsort(*cpus, (size_t)count, sizeof **cpus, by_place);
  for (int i = 1; i < count; i++) {
    const Cpu *last = &(*cpus)[i - 1], *own = &(*cpus)[i];
    bool same = own->core >= 0 && own->core == last->core && own->package == last->package;
    (*cpus)[i].thread = same ? last->thread + 1 : 0;
  }
  qsort(*cpus, (size_t)count, sizeof **cpus, by_place);
  return count;
}

/* Errors before MPI_Init are reported after it, since others would wait for a process that ends now. */
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
static int rank_of_launcher(void)
{
  for (size_t i = 0; i < sizeof rank_names / sizeof *rank_names; i++) {
    const char *text = getenv(rank_names[i]);
    long long rank;
    if (text && parse_integer(text, &rank) && rank >= 0 && rank < INT32_MAX) return (int)rank;
  }
  return -1;
}

/* The line of a rank: the number of its first core on its node, how many it keeps, and gpu if it drives one. */
static bool read_kept(const char *path, int rank, long long *first, long long *count, bool *drives)
{
  char *text = read_text(path, "file of cores"), *cursor = text, *line = NULL;
  for (int r = 0; r <= rank; r++) line = next_line(&cursor);
  char *second = line ? strchr(line, ' ') : NULL;
  if (second) *second++ = '\0';
  char *third = second ? strchr(second, ' ') : NULL;
  if (third) *third++ = '\0';
  *drives = third && strcmp(third, "gpu") == 0;
  bool good = second && (!third || *drives) && parse_integer(line, first) && parse_integer(second, count) && *first >= 0 && *count >= 1 &&
              *first <= MOST_CPUS && *count <= MOST_CPUS;
  free(text);
  return good;
}

char *keep_cores(char **argv)
{
  const char *path = NULL, *mark = getenv(executed);
  char own[32], threads[32];
  for (char **word = argv; *word; word++)
    if (strcmp(*word, "--cores") == 0) path = word[1];
  snprintf(own, sizeof own, "%ld", (long)getpid());
  if (!path || (mark && strcmp(mark, own) == 0)) return NULL;
  int rank = rank_of_launcher();
  if (rank < 0) return format_error("what started the programs does not say which rank each is, so none finds its cores");
  long long first, kept;
  bool drives;
  if (!read_kept(path, rank, &first, &kept, &drives))
    return format_error("%s:%d: wanted the first core of rank %d and how many it keeps", path, rank + 1, rank);
  Cpu *cpus;
  int count = list_cpus(&cpus);
  if (first + kept > count)
    return format_error("rank %d keeps cores %lld to %lld of its node, but only %d are there for it", rank, first,
                     first + kept - 1, count);
  cpu_set_t *set = allocate(1, set_size);
  for (int i = 0; i < kept; i++) CPU_SET_S((size_t)cpus[first + i].cpu, set_size, set);
  if (sched_setaffinity(0, set_size, set)) DIE("rank %d cannot keep its cores: %s", rank, strerror(errno));
  snprintf(threads, sizeof threads, "%lld", kept);
  if (drives ? setenv("COMMODEL_DRIVES", "gpu", 1) : unsetenv("COMMODEL_ACCELERATOR")) DIE("setenv: %s", strerror(errno));
  if (setenv("OMP_NUM_THREADS", threads, 1) || setenv(executed, own, 1)) DIE("setenv: %s", strerror(errno));
  execv("/proc/self/exe", argv);
  DIE("/proc/self/exe cannot be executed: %s", strerror(errno));
}

void check_kept(char *wrong, const char *path, int rank)
{
  if (wrong) user_error("%s", wrong);
  int believed = path ? rank_of_launcher() : rank;
  if (believed != rank) DIE("rank %d took the cores of rank %d, which its launcher said that it is", rank, believed);
}

/* 0-5,12 */
static void name_cores(char *text, size_t room)
{
  cpu_set_t *set = allocate(1, set_size);
  size_t used = 0;
  text[0] = '\0';
  if (sched_getaffinity(0, set_size, set) == 0)
    for (size_t cpu = 0; cpu < MOST_CPUS && used < room; cpu++) {
      if (!CPU_ISSET_S(cpu, set_size, set)) continue;
      size_t last = cpu;
      while (last + 1 < MOST_CPUS && CPU_ISSET_S(last + 1, set_size, set)) last++;
      const char *comma = used ? "," : "";
      used += (size_t)(last > cpu ? snprintf(text + used, room - used, "%s%zu-%zu", comma, cpu, last)
                                  : snprintf(text + used, room - used, "%s%zu", comma, cpu));
      cpu = last;
    }
  free(set);
}

char *gather_cores(int rank, int ranks)
{
  char own[CORES_ROOM];
  name_cores(own, sizeof own);
  char *cores = rank == 0 ? allocate((size_t)ranks, CORES_ROOM) : NULL;
  MPI_TRY(MPI_Gather(own, CORES_ROOM, MPI_CHAR, cores, CORES_ROOM, MPI_CHAR, 0, MPI_COMM_WORLD));
  return cores;
}
#else
/* Simulated nodes have no real cores. */
char *keep_cores(char **argv) { return (void)argv, NULL; }
void check_kept(char *wrong, const char *path, int rank) { (void)wrong, (void)path, (void)rank; }
char *gather_cores(int rank, int ranks) { return (void)rank, (void)ranks, NULL; }
#endif
