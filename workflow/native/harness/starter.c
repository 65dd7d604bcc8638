/* starter.c: a rank ends when the process that started it ends, such as the proxy of mpiexec.
 *
 * If a launcher ends early, a rank may stay in a collective operation and occupy a core for ever. The kernel therefore
 * signals the death of the parent. It also does so if only the thread that started the rank ends, as threads of
 * launchers may, so the handler compares parents. A rank whose parent ended before this call fails in MPI_Init, which
 * needs the launcher. Launchers set the variable (platforms/launchers.py); a program started by hand may outlive its shell.
 */
#include "harness.h"

#if !COMMODEL_SIMULATED
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_ORPHANED = 4 };
static pid_t starter; /* of this process, whose ranks are not threads: time is real */

static void end_if_orphaned(int number)
{
  (void)number;
  if (getppid() != starter) _exit(EXIT_ORPHANED);
}

void end_with_starter(void)
{
  const char *wanted = getenv("COMMODEL_END_WITH_STARTER");
  if (!wanted || !*wanted) return;
  struct sigaction action = {.sa_handler = end_if_orphaned, .sa_flags = SA_RESTART};
  starter = getppid();
  sigaction(SIGRTMAX, &action, NULL);
  prctl(PR_SET_PDEATHSIG, SIGRTMAX);
  end_if_orphaned(SIGRTMAX); /* if it ended before it could be watched */
}
#else
/* smpirun ends its simulation, and `measure` ends what smpirun leaves. */
void end_with_starter(void) {}
#endif
