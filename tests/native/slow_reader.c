/* slow_reader.c: a rank that is held up before each datagram that it takes, so that its socket fills on every machine. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct timespec held = {.tv_nsec = 50000};

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM) nanosleep(&held, NULL);
  return syscall(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL);
}
