/* authentic.h: packets that nobody without the token can have made, changed, left out or sent again, as an option.
 *
 * The parent begins with a random number. The hello then has no token, but a random number of the child and a MAC of all
 * of it; from both numbers follow the keys of the connection, one in each direction. Behind each frame there are
 * TAG_BYTES of HMAC-SHA-256 over the frame and how many came before it. Nothing is encrypted.
 */
#ifndef OVERLAY_AUTHENTIC_H
#define OVERLAY_AUTHENTIC_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32, NONCE_BYTES = 16, TAG_BYTES = 16, TAGS = 32 };

typedef struct {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char rest[64];
} Sha256;

/* A key, its blocks hashed already. */
typedef struct {
  Sha256 inner, outer;
} HmacKey;
HmacKey hmac_key(const unsigned char *key, size_t bytes);
void hmac_begin(Sha256 *hash, const HmacKey *key);
void hmac_add(Sha256 *hash, const void *bytes, size_t count);
void hmac_end(Sha256 *hash, const HmacKey *key, unsigned char digest[static DIGEST_BYTES]);

/* One end of a connection. */
typedef struct {
  HmacKey send_key, receive_key;
  uint64_t sent, received;               /* frames */
  unsigned char tags[TAGS][TAG_BYTES];   /* of the first frames that are to be sent */
  uint32_t ready;                        /* how many of these */
} Authentic;
/* `about`: what both ends know and no other connection has. NULL: no memory. */
Authentic *authentic_new(const unsigned char *token, size_t bytes, const void *about, size_t length, int is_parent);
void tag_of(const HmacKey *key, uint64_t number, const void *frame, size_t bytes, unsigned char tag[static TAG_BYTES]);
int same_bytes(const unsigned char *one, const unsigned char *other, size_t count); /* in the same time, wherever they differ */

#endif
