/* authentic.c: SHA-256 (FIPS 180-4), HMAC (RFC 2104), and the keys and tags of a connection. */
#include "authentic.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* ---- SHA-256 ---- */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void block_of(uint32_t state[static 8], const unsigned char *at)
{
  uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
                  h = state[7];
  for (int i = 0; i < 16; i++, at += 4) w[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  for (int i = 0; i < 64; i++) {
    uint32_t one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void begin(Sha256 *hash)
{
  *hash = (Sha256){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, 0, {0}};
}

void hmac_add(Sha256 *hash, const void *bytes, size_t count)
{
  const unsigned char *at = bytes;
  size_t held = hash->bytes % 64;
  hash->bytes += count;
  if (held) {
    size_t some = count < 64 - held ? count : 64 - held;
    memcpy(hash->rest + held, at, some);
    at += some, count -= some;
    if (held + some < 64) return;
    block_of(hash->state, hash->rest);
  }
  for (; count >= 64; at += 64, count -= 64) block_of(hash->state, at);
  if (count) memcpy(hash->rest, at, count);
}

static void end(Sha256 *hash, unsigned char digest[static DIGEST_BYTES])
{
  static const unsigned char padding[64] = {0x80};
  unsigned char length[8];
  uint64_t bits = hash->bytes * 8;
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
  hmac_add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
  hmac_add(hash, length, 8);
  for (int i = 0; i < DIGEST_BYTES; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- HMAC ---- */
HmacKey hmac_key(const unsigned char *key, size_t bytes)
{
  HmacKey made;
  unsigned char block[64] = {0};
  if (bytes <= sizeof block) {
    memcpy(block, key, bytes);
  } else {
    Sha256 hash;
    begin(&hash);
    hmac_add(&hash, key, bytes);
    end(&hash, block);
  }
  for (int i = 0; i < 64; i++) block[i] ^= 0x36;
  begin(&made.inner);
  hmac_add(&made.inner, block, sizeof block);
  for (int i = 0; i < 64; i++) block[i] ^= 0x36 ^ 0x5c;
  begin(&made.outer);
  hmac_add(&made.outer, block, sizeof block);
  explicit_bzero(block, sizeof block);
  return made;
}

void hmac_begin(Sha256 *hash, const HmacKey *key) { *hash = key->inner; }

void hmac_end(Sha256 *hash, const HmacKey *key, unsigned char digest[static DIGEST_BYTES])
{
  end(hash, digest);
  *hash = key->outer;
  hmac_add(hash, digest, DIGEST_BYTES);
  end(hash, digest);
}

/* ---- a connection ---- */
static HmacKey key_for(const HmacKey *token, const char *direction, const void *about, size_t length)
{
  Sha256 hash;
  unsigned char digest[DIGEST_BYTES];
  hmac_begin(&hash, token);
  hmac_add(&hash, direction, strlen(direction) + 1);
  hmac_add(&hash, about, length);
  hmac_end(&hash, token, digest);
  HmacKey key = hmac_key(digest, sizeof digest);
  explicit_bzero(digest, sizeof digest);
  return key;
}

Authentic *authentic_new(const unsigned char *token, size_t bytes, const void *about, size_t length, int is_parent)
{
  Authentic *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  HmacKey secret = hmac_key(token, bytes);
  made->send_key = key_for(&secret, is_parent ? "down" : "up", about, length);
  made->receive_key = key_for(&secret, is_parent ? "up" : "down", about, length);
  explicit_bzero(&secret, sizeof secret);
  return made;
}

void tag_of(const HmacKey *key, uint64_t number, const void *frame, size_t bytes, unsigned char tag[static TAG_BYTES])
{
  Sha256 hash;
  unsigned char digest[DIGEST_BYTES];
  hmac_begin(&hash, key);
  number = htole64(number);
  hmac_add(&hash, &number, sizeof number);
  hmac_add(&hash, frame, bytes);
  hmac_end(&hash, key, digest);
  memcpy(tag, digest, TAG_BYTES);
}

int same_bytes(const unsigned char *one, const unsigned char *other, size_t count)
{
  volatile unsigned sum = 0;
  for (size_t i = 0; i < count; i++) sum |= (unsigned)(one[i] ^ other[i]);
  return sum == 0;
}
