/* tcp.c: one TCP connection between two processes, with blocking calls. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const int answer_timeout = 10000; /* milliseconds for the other end */

int listen_on(const char *host, char address[static 64], int *port)
{
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(host, NULL, &hints, &list);
  char own_name[NI_MAXHOST] = "";
  if (code != 0 && gethostname(own_name, sizeof own_name - 1) == 0) /* a batch system may use another name for this host */
    code = getaddrinfo(own_name, NULL, &hints, &list);
  if (code != 0) DIE("cannot listen on '%s': %s", host, gai_strerror(code));
  struct sockaddr_storage own;
  socklen_t size = sizeof own;
  char service[NI_MAXSERV];
  int listener = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, list->ai_addr, list->ai_addrlen) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr *)&own, &size) != 0 ||
      getnameinfo((struct sockaddr *)&own, size, address, 64, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    DIE("cannot listen on '%s': %s", host, strerror(errno));
  freeaddrinfo(list);
  long long number = 0;
  parse_integer(service, &number);
  *port = (int)number;
  return listener;
}

static void disable_delay(int socket)
{
  int yes = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) DIE("no TCP_NODELAY: %s", strerror(errno));
}

static bool receive(int socket, char *bytes, size_t count)
{
  for (size_t done = 0; done < count;) {
    ssize_t received = recv(socket, bytes + done, count - done, 0);
    if (received == 0 || (received < 0 && errno != EINTR)) return false;
    if (received > 0) done += (size_t)received;
  }
  return true;
}

static bool send_all(int socket, const char *bytes, size_t count)
{
  for (size_t done = 0; done < count;) {
    ssize_t sent = send(socket, bytes + done, count - done, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) done += (size_t)sent;
  }
  return true;
}

int accept_token(int listener, uint64_t token)
{
  for (int strangers = 0; strangers < 100; strangers++) {
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    if (poll(&waiting, 1, answer_timeout) <= 0) DIE("no back-end has connected within %d s", answer_timeout / 1000);
    int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct timeval limit = {.tv_sec = 1}, none = {0};
    uint64_t received_word = 0;
    if (socket < 0) DIE("cannot accept a connection: %s", strerror(errno));
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (receive(socket, (char *)&received_word, sizeof received_word) && received_word == token) {
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
      disable_delay(socket);
      return socket;
    }
    close(socket); /* an unknown peer */
  }
  DIE("none of 100 connections is from the back-end");
}

int connect_to(const char *address, int port, uint64_t token)
{
  char service[16];
  snprintf(service, sizeof service, "%d", port);
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  if (getaddrinfo(address, service, &hints, &list) != 0) DIE("found '%s', wanted an address", address);
  int connection = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0 || connect(connection, list->ai_addr, list->ai_addrlen) != 0)
    DIE("cannot connect to %s port %d: %s", address, port, strerror(errno));
  freeaddrinfo(list);
  disable_delay(connection);
  if (!send_all(connection, (const char *)&token, sizeof token)) DIE("cannot send to %s: %s", address, strerror(errno));
  return connection;
}

/* An empty message is sent as 1 byte. */
bool exchange(int socket, char *bytes, size_t count, bool first)
{
  size_t sent_bytes = count ? count : 1;
  if (first) return send_all(socket, bytes, sent_bytes) && receive(socket, bytes, sent_bytes);
  return receive(socket, bytes, sent_bytes) && send_all(socket, bytes, sent_bytes);
}
