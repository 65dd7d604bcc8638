/* bin.c: groups back-ends into classes of equal checksums. A tool then queries one back-end of each class, since all
 * have the same data.
 *
 * Back-ends send "%uld", a checksum. The output is "%auld %aud %aud %aud": the checksum of each class, its
 * representative (its lowest back-end), its size, and the back-ends of all classes one class after the other. Classes
 * are in the order of their representatives.
 */
#include "../filter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char classes_format[] = "%auld %aud %aud %aud";

typedef struct {
  uint64_t checksum;
  uint32_t backend, representative;
} Member;

static int compare_checksums(const void *one, const void *other)
{
  const Member *a = one, *b = other;
  if (a->checksum != b->checksum) return a->checksum < b->checksum ? -1 : 1;
  return (a->backend > b->backend) - (a->backend < b->backend);
}

static int compare_representatives(const void *one, const void *other)
{
  const Member *a = one, *b = other;
  if (a->representative != b->representative) return a->representative < b->representative ? -1 : 1;
  return (a->backend > b->backend) - (a->backend < b->backend);
}

/* Writes the members in a packet to `members`, at most `capacity`; NULL: only counts them. Returns their number, or -1 if
 * the packet has another format or contradicts itself. */
static long read_members(OverlayPacket *packet, Member *members, long capacity)
{
  uint64_t checksum;
  const uint64_t *checksums;
  const uint32_t *representatives, *sizes, *backends;
  uint32_t classes, representative_count, size_count, backend_count, position = 0;
  if (strcmp(overlay_format(packet), "%uld") == 0) {
    if (members && capacity > 0 && overlay_unpack(packet, "%uld", &checksum) == OVERLAY_OK)
      *members = (Member){.checksum = checksum, .backend = (uint32_t)overlay_source(packet)};
    return 1;
  }
  if (overlay_unpack(packet, classes_format, &checksums, &classes, &representatives, &representative_count, &sizes,
                     &size_count, &backends, &backend_count) != OVERLAY_OK)
    return overlay_fail("filter bin: found a packet '%s', wanted a checksum, '%%uld'", overlay_format(packet));
  bool equal_lengths = classes == representative_count && classes == size_count;
  for (uint32_t i = 0; equal_lengths && i < classes; position += sizes[i++]) {
    if (sizes[i] > backend_count - position) return overlay_fail("filter bin: found classes of more back-ends than there are");
    for (uint32_t m = 0; members && m < sizes[i] && (long)(position + m) < capacity; m++)
      members[position + m] = (Member){.checksum = checksums[i], .backend = backends[position + m]};
  }
  return position == backend_count ? (long)backend_count : overlay_fail("filter bin: found classes of fewer back-ends than there are");
}

static int emit_classes(OverlayWave *wave, const Member *members, uint32_t count)
{
  uint64_t *checksums = calloc(count + 1, sizeof *checksums);
  uint32_t *representatives = calloc(count + 1, sizeof *representatives), *sizes = calloc(count + 1, sizeof *sizes);
  uint32_t *backends = calloc(count + 1, sizeof *backends), classes = 0;
  int code = checksums && representatives && sizes && backends ? OVERLAY_OK : overlay_fail("no memory for a wave");
  for (uint32_t i = 0; code == OVERLAY_OK && i < count; i++) {
    if (!i || members[i].representative != members[i - 1].representative)
      checksums[classes] = members[i].checksum, representatives[classes++] = members[i].representative;
    sizes[classes - 1]++;
    backends[i] = members[i].backend;
  }
  OverlayValue values[] = {{.array = checksums, .count = classes},
                           {.array = representatives, .count = classes},
                           {.array = sizes, .count = classes},
                           {.array = backends, .count = count}};
  if (code == OVERLAY_OK) code = overlay_emit(wave, classes_format, values);
  free(checksums), free(representatives), free(sizes), free(backends);
  return code;
}

int filter_bin(OverlayWave *wave)
{
  long total = 0, written = 0;
  for (int p = 0; p < wave->count; p++) {
    long count = read_members(wave->in[p], NULL, 0);
    if (count < 0) return OVERLAY_FAILED;
    total += count;
  }
  Member *members = calloc((size_t)total + 1, sizeof *members);
  if (!members) return overlay_fail("no memory for a wave");
  for (int p = 0; p < wave->count; p++) written += read_members(wave->in[p], members + written, total - written);
  qsort(members, (size_t)total, sizeof *members, compare_checksums);
  for (long i = 0; i < total; i++) {
    bool first = i == 0 || members[i].checksum != members[i - 1].checksum;
    members[i].representative = first ? members[i].backend : members[i - 1].representative;
  }
  qsort(members, (size_t)total, sizeof *members, compare_representatives);
  int code = emit_classes(wave, members, (uint32_t)total);
  free(members);
  return code;
}
