/* handshake.c: who may join a network: who knows its token. */
#include "errors.h"
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char magic[8] = "overlay";
enum { ORDER = 0x01020304 };

int token_new(unsigned char token[static TOKEN_BYTES])
{
  return getrandom(token, TOKEN_BYTES, 0) == TOKEN_BYTES ? OVERLAY_OK
                                                         : overlay_fail("no random token: %s", strerror(errno));
}

Hello hello_of(const unsigned char token[static TOKEN_BYTES], uint32_t node)
{
  Hello hello = {.version = WIRE_VERSION, .order = ORDER, .node = node, .process = (uint32_t)getpid()};
  memcpy(hello.magic, magic, sizeof magic);
  memcpy(hello.token, token, TOKEN_BYTES);
  return hello;
}

/* How long it takes tells nothing about where the first wrong byte is. */
static unsigned difference(const unsigned char *one, const unsigned char *other)
{
  volatile unsigned sum = 0;
  for (int i = 0; i < TOKEN_BYTES; i++) sum |= (unsigned)(one[i] ^ other[i]);
  return sum;
}

const char *hello_refused(const Hello *hello, const unsigned char token[static TOKEN_BYTES])
{
  if (memcmp(hello->magic, magic, sizeof magic) != 0) return "it does not speak this protocol";
  if (difference(hello->token, token) != 0) return "its token is wrong";
  if (hello->version != WIRE_VERSION) return "it is of another version";
  if (hello->order != ORDER) return "its bytes are in another order";
  return NULL;
}
