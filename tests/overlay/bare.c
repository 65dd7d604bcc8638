/* bare.c: what the overlay network is held against: the same round trip over a flat tree with nothing but sockets and
 * one epoll loop in each process. The same number of bytes goes down and up, and the answers are summed. Its leaves are
 * started as back-ends are, as programs: forks that share the pages of their parent would be faster than any tool. */
#include "bare.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LEAVES = 1024 };
static int sockets[MAX_LEAVES], leaves, loop;
static size_t payload;
static char *bytes_sent;
static pid_t processes[MAX_LEAVES];

static void check(int good, const char *what)
{
  if (good) return;
  perror(what);
  exit(3);
}

static void prepare(int fd)
{
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  check(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

static void watch(int epoll, int fd, int number)
{
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)number};
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

_Noreturn void bare_leaf(int port, int number, size_t bytes)
{
  char *rest = malloc(bytes + 1);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
  struct epoll_event event;
  BareMessage message;
  check(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  prepare(fd);
  watch(epoll, fd, 0);
  for (;;) {
    if (epoll_wait(epoll, &event, 1, -1) < 1) continue;
    ssize_t count = recv(fd, &message, sizeof message, 0);
    if (count <= 0) _exit(0);
    for (size_t left = bytes; left;) {
      if (epoll_wait(epoll, &event, 1, -1) < 1) continue;
      if ((count = recv(fd, rest, left, 0)) <= 0) _exit(0);
      left -= (size_t)count;
    }
    message.value = number;
    check(send(fd, &message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
  }
}

void bare_start(char *program, int count, size_t bytes)
{
  char port[16], number[16], size_text[32], *command[] = {program, "bare-leaf", port, number, size_text, NULL};
  payload = bytes, bytes_sent = calloc(bytes + 1, 1);
  snprintf(size_text, sizeof size_text, "%zu", bytes);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  leaves = count;
  loop = epoll_create1(EPOLL_CLOEXEC);
  check(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, MAX_LEAVES) == 0, "listen");
  check(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
  for (int i = 0; i < leaves; i++) {
    processes[i] = fork();
    check(processes[i] >= 0, "fork");
    if (!processes[i]) {
      snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
      snprintf(number, sizeof number, "%d", i);
      execv(program, command);
      _exit(127);
    }
    sockets[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    check(sockets[i] >= 0, "accept");
    prepare(sockets[i]);
    watch(loop, sockets[i], i);
  }
  close(listener);
}

/* To all leaves in turn, as much as each takes. */
static void send_payload(void)
{
  size_t sent[MAX_LEAVES] = {0};
  for (int left = leaves; left;) {
    struct pollfd writable[MAX_LEAVES];
    int waiting = 0;
    for (int i = 0; i < leaves; i++)
      if (sent[i] < payload) writable[waiting++] = (struct pollfd){.fd = sockets[i], .events = POLLOUT};
    check(poll(writable, (nfds_t)waiting, -1) > 0, "poll");
    for (int i = 0, at = 0; i < leaves; i++) {
      if (sent[i] == payload || !(writable[at++].revents & POLLOUT)) continue;
      ssize_t count = send(sockets[i], bytes_sent + sent[i], payload - sent[i], MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) sent[i] += (size_t)count;
      left -= sent[i] == payload;
    }
  }
}

double bare_round(void)
{
  struct epoll_event events[256];
  BareMessage message = {.value = 1};
  double sum = 0;
  for (int i = 0; i < leaves; i++)
    check(send(sockets[i], &message, sizeof message, MSG_NOSIGNAL) == sizeof message, "send");
  if (payload) send_payload();
  for (int left = leaves; left;) {
    int count = epoll_wait(loop, events, 256, -1);
    for (int i = 0; i < count; i++) {
      check(recv(sockets[events[i].data.u32], &message, sizeof message, 0) == sizeof message, "recv");
      sum += message.value;
      left--;
    }
  }
  return sum;
}

void bare_end(void)
{
  for (int i = 0; i < leaves; i++) close(sockets[i]);
  for (int i = 0; i < leaves; i++) waitpid(processes[i], NULL, 0);
  close(loop);
}
