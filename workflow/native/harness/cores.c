/* cores.c: binding of a process to its cores, with one thread for each.
 *
 * The process binds itself before MPI starts, independently of launcher and image. OpenMP and BLAS libraries read
 * OMP_NUM_THREADS when they are loaded, so the program is executed again with it. The rank comes from the launcher's
 * environment and is compared with MPI's after MPI_Init. The processes of a node share its cores in the order of ranks,
 * except that one that drives a GPU gets cores next to it (sharing.c). One without cores of its own gets a core that is
 * left over, or shares those of the others.
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

/* Reads the shares of the processes on the node of a rank, in their order. Returns the number of a wrong line, or 0. */
static int read_shares(const char *path, int rank, Share **shares, int *processes, int *own)
{
  char *text = read_text(path, "file of cores"), *cursor = text;
  int lines = 0, most = 1, wrong = 0;
  for (const char *c = text; *c; c++) most += *c == '\n';
  *shares = allocate((size_t)most, sizeof **shares);
  Share *all = *shares;
  for (char *line = next_line(&cursor); line && !wrong; line = next_line(&cursor))
    if (!parse_share(line, &all[lines++])) wrong = lines;
  if (!wrong && lines <= rank) wrong = rank + 1;
  const long long node = wrong ? 0 : all[rank].node;
  for (int r = 0; r < lines && !wrong; r++) {
    if (all[r].node != node) continue;
    if (r == rank) *own = *processes;
    all[(*processes)++] = all[r];
  }
  free(text);
  return wrong;
}

/* Finds the CPUs next to the GPUs of the processes. */
static void find_near_cpus(Share *shares, int processes, const Cpu *cpus, int count, bool (*locate)(int gpu, char *address))
{
  int *numbers = allocate((size_t)count, sizeof *numbers);
  for (int i = 0; i < count; i++) numbers[i] = cpus[i].cpu;
  for (Share *share = shares; locate && share < shares + processes; share++) {
    char address[ADDRESS_BYTES] = "";
    if (share->gpu >= 0 && locate(share->gpu, address))
      share->near = read_near_cpus("/sys/bus/pci/devices", address, numbers, count);
  }
  free(numbers);
}

/* Binds this process to the CPUs of share `own`, or returns an error. */
static char *bind_share(Share *shares, int processes, int own, int rank, bool (*locate)(int gpu, char *address))
{
  Cpu *cpus;
  int count = list_cpus(&cpus);
  long long first = 0;
  for (int p = 0; p < own; p++) first += shares[p].count;
  if (shares[own].count > 0 && first + shares[own].count > count)
    return format_error("rank %d needs cores %lld to %lld of its node, but only %d are available", rank, first,
                     first + shares[own].count - 1, count);
  find_near_cpus(shares, processes, cpus, count, locate);
  int *owners = allocate((size_t)count, sizeof *owners);
  share_cpus(shares, processes, owners, count);
  cpu_set_t *set = allocate(1, set_size);
  for (int i = 0; i < count; i++)
    if (owners[i] == own) CPU_SET_S((size_t)cpus[i].cpu, set_size, set);
  bool owns_cpus = CPU_COUNT_S(set_size, set) > 0;
  for (int i = 0; i < count && !owns_cpus; i++) CPU_SET_S((size_t)cpus[i].cpu, set_size, set);
  if (sched_setaffinity(0, set_size, set)) DIE("rank %d cannot be bound to its cores: %s", rank, strerror(errno));
  return NULL;
}

char *bind_to_cores(char **argv, bool (*locate)(int gpu, char *address))
{
  const char *path = NULL, *mark = getenv(executed);
  char self[32], threads[32], gpu[32];
  for (char **word = argv; *word; word++)
    if (strcmp(*word, "--cores") == 0) path = word[1];
  snprintf(self, sizeof self, "%ld", (long)getpid());
  if (!path || (mark && strcmp(mark, self) == 0)) return NULL;
  int rank = find_launcher_rank();
  if (rank < 0) return format_error("the launcher sets no environment variable with the rank, so cores cannot be assigned");
  Share *shares;
  int processes = 0, own = 0, wrong = read_shares(path, rank, &shares, &processes, &own);
  if (wrong) return format_error("%s:%d: wanted the node of rank %d and the number of its cores", path, wrong, wrong - 1);
  char *error = bind_share(shares, processes, own, rank, locate);
  if (error) return error;
  snprintf(threads, sizeof threads, "%lld", shares[own].count > 0 ? shares[own].count : 1);
  snprintf(gpu, sizeof gpu, "%d", shares[own].gpu);
  bool drives = shares[own].gpu >= 0;
  if (drives ? setenv("COMMODEL_DRIVES", gpu, 1) : unsetenv("COMMODEL_ACCELERATOR")) DIE("setenv: %s", strerror(errno));
  if (setenv("OMP_NUM_THREADS", threads, 1) || setenv(executed, self, 1)) DIE("setenv: %s", strerror(errno));
  execv("/proc/self/exe", argv);
  DIE("/proc/self/exe cannot be executed: %s", strerror(errno));
}

void check_binding(char *wrong, const char *path, int rank)
{
  if (wrong) user_error("%s", wrong);
  int launcher_rank = path ? find_launcher_rank() : rank;
  if (launcher_rank != rank) DIE("rank %d is bound to the cores of rank %d, its rank in the launcher's environment", rank, launcher_rank);
}

int bind_to_core(int number, int processes)
{
  Cpu *cpus;
  int count = list_cpus(&cpus), package = -1;
  if (processes <= count) {
    cpu_set_t *set = allocate(1, set_size);
    CPU_SET_S((size_t)cpus[number].cpu, set_size, set);
    if (sched_setaffinity(0, set_size, set) == 0) package = (int)cpus[number].package;
    free(set);
  }
  free(cpus);
  return package;
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
char *bind_to_cores(char **argv, bool (*locate)(int gpu, char *address)) { return (void)argv, (void)locate, NULL; }
void check_binding(char *wrong, const char *path, int rank) { (void)wrong, (void)path, (void)rank; }
int bind_to_core(int number, int processes) { return (void)number, (void)processes, 0; } /* a simulated node is one socket */
char *gather_cores(int rank, int ranks) { return (void)rank, (void)ranks, NULL; }
#endif
