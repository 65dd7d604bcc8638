/* handshake.c: the token that admits a process to a network. */
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

int nonce_new(unsigned char nonce[static NONCE_BYTES])
{
  return getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES ? OVERLAY_OK
                                                         : overlay_fail("no random number: %s", strerror(errno));
}

/* The child's own random number, and then the MAC, lie where the token would. */
static void hello_mac(const Hello *hello, const unsigned char token[static TOKEN_BYTES], const unsigned char *nonce,
                      unsigned char mac[static DIGEST_BYTES])
{
  Hello unsigned_hello = *hello;
  memset(unsigned_hello.token + NONCE_BYTES, 0, TOKEN_BYTES - NONCE_BYTES);
  struct iovec parts[] = {
      {"hello", sizeof "hello"}, {(void *)nonce, NONCE_BYTES}, {&unsigned_hello, sizeof unsigned_hello}};
  hmac(token, parts, 3, mac);
}

Hello hello_of(const unsigned char token[static TOKEN_BYTES], uint32_t node, const unsigned char *nonce)
{
  Hello hello = {.version = WIRE_VERSION, .order = ORDER, .node = node, .process = (uint32_t)getpid()};
  unsigned char mac[DIGEST_BYTES];
  memcpy(hello.magic, magic, sizeof magic);
  if (!nonce) {
    memcpy(hello.token, token, TOKEN_BYTES);
    return hello;
  }
  if (nonce_new(hello.token) != OVERLAY_OK) return hello; /* which is refused */
  hello_mac(&hello, token, nonce, mac);
  memcpy(hello.token + NONCE_BYTES, mac, TOKEN_BYTES - NONCE_BYTES);
  return hello;
}

uint32_t hello_number(const Hello *hello, uint32_t number)
{
  return hello->order == ORDER ? number : __builtin_bswap32(number);
}

const char *hello_refused(const Hello *hello, const unsigned char token[static TOKEN_BYTES], const unsigned char *nonce)
{
  unsigned char mac[DIGEST_BYTES];
  if (nonce) hello_mac(hello, token, nonce, mac);
  if (memcmp(hello->magic, magic, sizeof magic) != 0) return "it does not speak this protocol";
  if (nonce ? !same_bytes(hello->token + NONCE_BYTES, mac, TOKEN_BYTES - NONCE_BYTES)
            : !same_bytes(hello->token, token, TOKEN_BYTES))
    return "its token is wrong";
  if (hello_number(hello, hello->order) != ORDER) return "its bytes are in an order that is none";
  if (hello_number(hello, hello->version) != WIRE_VERSION) return "it is of another version";
  return NULL;
}

Authentic *hello_keys(const Hello *hello, const unsigned char token[static TOKEN_BYTES], const unsigned char *nonce,
                      bool is_parent)
{
  return authentic_new(token, (struct iovec){(void *)nonce, NONCE_BYTES},
                       (struct iovec){(void *)hello, sizeof *hello}, is_parent);
}
