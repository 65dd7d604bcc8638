/* authentic.c: keys by HMAC-SHA-256 (FIPS 180-4, RFC 2104), tags by SipHash (Aumasson and Bernstein, 2012). */
#include "authentic.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* ---- SHA-256 ---- */
typedef struct {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char partial[64];
} Sha256;

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

static void add(Sha256 *hash, const void *bytes, size_t count)
{
  const unsigned char *at = bytes;
  size_t buffered = hash->bytes % 64;
  hash->bytes += count;
  if (buffered) {
    size_t part_bytes = count < 64 - buffered ? count : 64 - buffered;
    memcpy(hash->partial + buffered, at, part_bytes);
    at += part_bytes, count -= part_bytes;
    if (buffered + part_bytes < 64) return;
    block_of(hash->state, hash->partial);
  }
  for (; count >= 64; at += 64, count -= 64) block_of(hash->state, at);
  if (count) memcpy(hash->partial, at, count);
}

static void end(Sha256 *hash, unsigned char digest[static DIGEST_BYTES])
{
  static const unsigned char padding[64] = {0x80};
  unsigned char length[8];
  uint64_t bits = hash->bytes * 8;
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
  add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
  add(hash, length, 8);
  for (int i = 0; i < DIGEST_BYTES; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- HMAC ---- */
static void begin_with(Sha256 *hash, const unsigned char key[static KEY_BYTES], unsigned char pad)
{
  unsigned char block[64] = {0};
  memcpy(block, key, KEY_BYTES);
  for (int i = 0; i < 64; i++) block[i] ^= pad;
  begin(hash);
  add(hash, block, sizeof block);
  explicit_bzero(block, sizeof block);
}

void hmac(const unsigned char key[static KEY_BYTES], const struct iovec *parts, int count,
          unsigned char digest[static DIGEST_BYTES])
{
  Sha256 hash;
  begin_with(&hash, key, 0x36);
  for (int i = 0; i < count; i++) add(&hash, parts[i].iov_base, parts[i].iov_len);
  end(&hash, digest);
  begin_with(&hash, key, 0x5c);
  add(&hash, digest, DIGEST_BYTES);
  end(&hash, digest);
}

/* ---- SipHash-2-4, tags of 128 bits ---- */
typedef struct {
  uint64_t a, b, c, d;
} Sip;

static inline uint64_t left(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline void rounds(Sip *sip, int count)
{
  while (count--) {
    sip->a += sip->b, sip->b = left(sip->b, 13) ^ sip->a, sip->a = left(sip->a, 32);
    sip->c += sip->d, sip->d = left(sip->d, 16) ^ sip->c;
    sip->a += sip->d, sip->d = left(sip->d, 21) ^ sip->a;
    sip->c += sip->b, sip->b = left(sip->b, 17) ^ sip->c, sip->c = left(sip->c, 32);
  }
}

static inline void take(Sip *sip, uint64_t word)
{
  sip->d ^= word;
  rounds(sip, 2);
  sip->a ^= word;
}

static uint64_t read_word(const unsigned char *at)
{
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return le64toh(word);
}

/* A multiple of 8 bytes, as all frames are, behind their number. */
void tag_of(const TagKey *key, uint64_t number, const void *frame, size_t bytes, unsigned char tag[static TAG_BYTES])
{
  Sip sip = {key->words[0] ^ 0x736f6d6570736575, key->words[1] ^ 0x646f72616e646f6d ^ 0xee,
             key->words[0] ^ 0x6c7967656e657261, key->words[1] ^ 0x7465646279746573};
  take(&sip, number);
  for (const unsigned char *at = frame, *end = at + bytes; at < end; at += 8) take(&sip, read_word(at));
  take(&sip, (uint64_t)(bytes + 8) << 56);
  sip.c ^= 0xee;
  for (int half = 0; half < 2; half++, sip.b ^= 0xdd) {
    rounds(&sip, 4);
    uint64_t word = htole64(sip.a ^ sip.b ^ sip.c ^ sip.d);
    memcpy(tag + 8 * half, &word, 8);
  }
}

int same_bytes(const unsigned char *one, const unsigned char *other, size_t count)
{
  volatile unsigned sum = 0;
  for (size_t i = 0; i < count; i++) sum |= (unsigned)(one[i] ^ other[i]);
  return sum == 0;
}

/* ---- a connection ---- */
static TagKey key_for(const unsigned char token[static KEY_BYTES], const char *direction, struct iovec nonce,
                      struct iovec hello)
{
  unsigned char digest[DIGEST_BYTES];
  hmac(token, (struct iovec[]){{(void *)direction, strlen(direction) + 1}, nonce, hello}, 3, digest);
  TagKey key = {{read_word(digest), read_word(digest + 8)}};
  explicit_bzero(digest, sizeof digest);
  return key;
}

Authentic *authentic_new(const unsigned char token[static KEY_BYTES], struct iovec nonce, struct iovec hello,
                         int is_parent)
{
  Authentic *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->send_key = key_for(token, is_parent ? "down" : "up", nonce, hello);
  made->receive_key = key_for(token, is_parent ? "up" : "down", nonce, hello);
  return made;
}
