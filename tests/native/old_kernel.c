/* old_kernel.c: a system before Linux 4.12, whose sockets do not tell what they have thrown away (no SO_MEMINFO). */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
  if (level == SOL_SOCKET && name == SO_MEMINFO) {
    errno = ENOPROTOOPT;
    return -1;
  }
  return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
}
